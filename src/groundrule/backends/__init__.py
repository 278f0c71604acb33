"""Places to train: one learner and one server each, behind the models that a program registers."""

BACKENDS = {"local": "groundrule.backends.local:LocalBackend"}
