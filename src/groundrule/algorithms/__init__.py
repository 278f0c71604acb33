"""Pure maths on numbers and tensors: advantages, policy losses, KL, and what of a group is trained on."""
