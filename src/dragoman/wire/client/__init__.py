"""The client side: how requests are written in each era, and the choice between the eras."""
