"""A network in front, the SVM as its last layer: features are computed once, and every λ is solved on them.

`features_of` runs the network without its last layer over all inputs, in batches, and keeps the result in a file; a second
call reads it. Any callable from a batch (b, ...) to features (b, D) will do. With PyTorch (`pip install -e ".[torch]"`):

    network = torchvision.models.resnet18(weights="DEFAULT")
    network.fc = torch.nn.Identity()
    x = features_of(torch_network(network), images, "features.npy")
    model = MulticlassSVM(lam="path", eps=0.05).fit(x, labels)
    network.fc = torch_layer(model)  # predicts what the SVM predicts

The features may also train structured models on the command line, with certificates for every λ: put them into an .npz file
and give `dataset=multiclass_arrays dataset.file=features.npz`, or read them in `Oracle.__init__`.
"""

from pathlib import Path

import numpy as np


def features_of(network, inputs, file, batch=64):
    """Features (n, D), float32, of `inputs` (n, ...) by `network`; read from `file`, an .npy, if they are there already."""
    if not Path(file).exists():
        parts = [np.asarray(network(inputs[k : k + batch]), np.float32) for k in range(0, len(inputs), batch)]
        np.save(file, np.concatenate(parts))
    features = np.load(file)
    if len(features) != len(inputs):
        raise ValueError(
            f"{file}: has the features of {len(features)} inputs, expected {len(inputs)}; remove it to make it again"
        )
    return features


def torch_network(module, device="cpu"):
    """A torch module as a callable from arrays to arrays, in evaluation mode and without gradients."""
    import torch

    module = module.to(device).eval()

    def call(batch):
        with torch.inference_mode():
            return module(torch.as_tensor(batch, device=device)).flatten(1).cpu().numpy()

    return call


def torch_layer(model):
    """The model as a torch layer: scores (b, K) of features (b, D), of which the largest is the predicted class."""
    import torch

    layer = torch.nn.Linear(model.coef_.shape[1], model.coef_.shape[0])
    with torch.no_grad():
        layer.weight.copy_(torch.as_tensor(model.coef_))
        layer.bias.copy_(torch.as_tensor(model.intercept_))
    return layer
