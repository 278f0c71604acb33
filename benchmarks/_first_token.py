"""The shortest program that loads a model folder with transformers and generates one token.

python benchmarks/_first_token.py MODEL_FOLDER PROMPT
"""

import sys

from transformers import AutoModelForCausalLM, AutoTokenizer

folder, prompt = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder)
inputs = tokenizer.apply_chat_template(
    [{"role": "user", "content": prompt}], add_generation_prompt=True, return_tensors="pt", return_dict=True
)
output = model.generate(**inputs, max_new_tokens=1, do_sample=False)
print(repr(tokenizer.decode(output[0, -1:])), flush=True)
