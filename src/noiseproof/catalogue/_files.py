"""Which files are published where, and the digests by which they are known.

A digest is the sha256 of the arrays in a file, images [N, C, H, W] and then labels, as bytes. It
holds whatever the container (compressed or not, pickled by any Python), so damage of any kind to
anybody's copy is found in one place. A checksum is that of the file to download.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FileSet:
    """Files that are published together.

    Attributes:
        name: the folder of our own that downloads go to.
        folders: where others put the files inside a root; "" is the root itself.
        digests: of each file, or None where it is not known.
        downloads: of each file or archive to download, the checksum.
        mirrors: addresses that hold the downloads, in the order that they are tried.
    """

    name: str
    folders: tuple[str, ...]
    digests: Mapping[str, str | None]
    downloads: Mapping[str, str]
    mirrors: tuple[str, ...]


_IDX = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")


def _idx(
    name: str, folder: str, digests: list[str], md5: list[str], mirrors: tuple[str, ...]
) -> FileSet:
    return FileSet(
        name,
        (f"{folder}/raw", name, ""),
        {f"{file}-ubyte": digest for file, digest in zip(_IDX, digests, strict=True)},
        {f"{file}-ubyte.gz": f"md5:{hex}" for file, hex in zip(_IDX, md5, strict=True)},
        mirrors,
    )


MNIST = _idx(
    "mnist",
    "MNIST",
    [
        "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
        "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
        "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
        "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
    ],
    [
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ],
    (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
)

FASHION_MNIST = _idx(
    "fashion-mnist",
    "FashionMNIST",
    [
        "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
        "657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7",
        "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
        "3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9",
    ],
    [
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ],
    (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
)

_TORONTO = ("https://www.cs.toronto.edu/~kriz/", "http://www.cs.toronto.edu/~kriz/")

CIFAR10 = FileSet(
    "cifar10",
    ("cifar-10-batches-py", ""),
    {
        "data_batch_1": "ba52cb2d72c412975d7556bb26bd094956f1c002d1937053f6f1252f2ac17114",
        "data_batch_2": "350ff9000489d02f2568c0dcf4912ffdbae9e50932147905fb1b8159ad54f0ac",
        "data_batch_3": "a2b8653fc457df407af6c38b7e0d1a12530f3b5f81fce9f81516efd065daf722",
        "data_batch_4": "133e6292c377755074c305db8a684d48d5397372cb0aba34f52b4335eab35d97",
        "data_batch_5": "eb08cdc11fd1267ef871cf4790f193684b3f556d13317be68f4eb374a078ea87",
        "test_batch": "9a4c74f5c8b6f2c4e13d3a1dfb43a5a8cda8a9da515e99fd620d2013a1a6287a",
    },
    {"cifar-10-python.tar.gz": "md5:c58f30108f718f92721af3b95e74349a"},
    _TORONTO,
)

CIFAR100 = FileSet(
    "cifar100",
    ("cifar-100-python", ""),
    {
        "train": "4e50520a1125d045fade68001374cf6c74e360819dc08b7ecffe4e6c79e9b419",
        "test": "dc66669533e5da36cbeb472b8e2af54edcb17f1d9736fdbd5fede79d08f46b2f",
    },
    {"cifar-100-python.tar.gz": "md5:eb9058c3a382ffc7106e4002c42a8d85"},
    _TORONTO,
)

_UCSC = (
    "https://raw.githubusercontent.com/UCSC-REAL/cifar-10-100n/main/data/",
    "https://github.com/UCSC-REAL/cifar-10-100n/raw/main/data/",
)


def _human(name: str, file: str, digest: str, sha256: str) -> FileSet:
    return FileSet(name, ("cifar-n", "data", ""), {file: digest}, {file: f"sha256:{sha256}"}, _UCSC)


CIFAR10N = _human(
    "cifar10n",
    "CIFAR-10_human.pt",
    "e14cd65ab126cbc76931e583d779c39e41ca4cdc91320f957d420e0777099268",
    "873e69c39cb9b5e97fb6bae2d60bb59b38a5cbc31d2b868f7903dcb2b9dd2310",
)
CIFAR100N = _human(
    "cifar100n",
    "CIFAR-100_human.pt",
    "06872140a9a2cc6255a7b877008e2587e14b06843363ca45148ffc7fcf0c4234",
    "bd2d80409754d420292d622e15e25248ba21e37d27429efac49c8da723f44394",
)
