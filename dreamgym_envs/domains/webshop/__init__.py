"""WebShop: the shop itself, its goals and rewards, and the abstract state that its pages become."""
