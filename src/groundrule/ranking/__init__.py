"""People put answers into order, in a web page that only their own machine reaches."""
