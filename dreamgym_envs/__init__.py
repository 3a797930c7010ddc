"""DreamGym (arXiv 2511.03773) as Gymnasium environments: learned experience models to train agents in.

Importing the package registers its environments:

    import gymnasium as gym
    import dreamgym_envs

    env = gym.make("DreamGym/ALFWorld-v0")
    envs = gym.make_vec("DreamGym/ALFWorld-v0", num_envs=64)
"""

from dreamgym_envs.registration import register_all

register_all()
