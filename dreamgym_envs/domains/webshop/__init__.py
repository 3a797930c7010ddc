"""WebShop: the shop itself, its goals and rewards, the abstract state of its pages, and what a model learns of it."""
