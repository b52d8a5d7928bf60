"""DeepRM's own network, which reads states instead of images."""
