"""Programs that run in the pods of a cluster; they travel there in ConfigMaps, so each uses the standard library only."""
