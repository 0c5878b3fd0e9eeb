"""x"""
def observe(paths, is_built): return None
def require(f): return None
