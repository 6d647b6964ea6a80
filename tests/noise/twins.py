"""Slow twins: the authors' draws one call at a time, and the stream in Python's own integers."""

from __future__ import annotations

import numpy as np


def other_class(random, num_classes, own):
    others = list(range(num_classes))
    others.remove(own)
    return random.choice(others)


def authors_symmetric(labels, rate, num_classes, seed):
    random = np.random.RandomState(seed)
    noisy = list(labels)
    number = int(int(rate * len(labels)) / num_classes)
    chosen = []
    for j in range(num_classes):
        members = [i for i, label in enumerate(labels) if label == j]
        chosen.extend(random.choice(members, number, replace=False))
    for i in chosen:
        noisy[i] = other_class(random, num_classes, noisy[i])
    return np.array(noisy)


def authors_cifar10(labels, rate, seed):
    random = np.random.RandomState(seed)
    noisy = np.array(labels)
    for source, target in ((9, 1), (2, 0), (3, 5), (5, 3), (4, 7)):
        members = np.where(noisy == source)[0]
        for i in random.choice(members, int(rate * len(members)), replace=False):
            noisy[i] = target
    return noisy


def authors_by_matrix(labels, matrix, seed):
    random = np.random.RandomState(seed)
    noisy = np.array(labels)
    for i in range(len(labels)):
        one = random.multinomial(1, matrix[labels[i], :], 1)[0]
        noisy[i] = np.where(one == 1)[0][0]
    return noisy


def mnist_matrix(rate):
    matrix = np.eye(10)
    for source, target in ((7, 1), (2, 7), (5, 6), (6, 5), (3, 8)):
        matrix[source, source], matrix[source, target] = 1 - rate, rate
    return matrix


def cifar100_matrix(rate):
    matrix = np.zeros((100, 100))
    for group in range(20):
        for place in range(5):
            matrix[5 * group + place, 5 * group + place] = 1 - rate
            matrix[5 * group + place, 5 * group + (place + 1) % 5] = rate
    return matrix


def philox(key, counter, count):
    """Words of Philox4x64-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011)."""
    full = 2**64 - 1
    position = sum(word << 64 * place for place, word in enumerate(counter))
    drawn: list[int] = []
    while len(drawn) < count:
        position += 1
        x = [position >> 64 * place & full for place in range(4)]
        k = list(key)
        for _ in range(10):
            first, second = 0xD2E7470EE14C6C93 * x[0], 0xCA5A826395121157 * x[2]
            x = [second >> 64 ^ x[1] ^ k[0], second & full, first >> 64 ^ x[3] ^ k[1], first & full]
            k = [k[0] + 0x9E3779B97F4A7C15 & full, k[1] + 0xBB67AE8584CAA73B & full]
        drawn += x
    return drawn[:count]
