"""Answers that try to leave their place."""

SCRIPT = (
    '<script>window.hacked = true</script><img src="http://example.com/x.png" onerror="window.hacked = true">'
)
BREAK_OUT = (
    "</div></article></section>\"'><b id=broken>bold</b> javascript:alert(1) {{7*7}} ${7*7} %3Cscript%3E"
)
TURNED = "safe\u202etxt.exe\u2066 and \x00\x1b[31m\x07 bell\u200b hidden \ud800 half \U000e0041 tag"
LONG = "\n".join(f"line {i} of an answer that goes on and on" for i in range(400))
EVERYTHING = (SCRIPT, BREAK_OUT, TURNED, LONG)
