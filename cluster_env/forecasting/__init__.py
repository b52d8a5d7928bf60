"""When waiting jobs will start, with intervals, from the past of a site."""
