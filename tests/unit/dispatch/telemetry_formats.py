#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# dispatch: reads what telemetry is written as: Prometheus' text format by its
# rules, and JSON; and compares the two.
#
#   telemetry_formats.py unit_dispatch_telemetry
import json
import re
import subprocess
import sys

NAME = re.compile(r'[a-zA-Z_:][a-zA-Z0-9_:]*')
LABEL = re.compile(r'[a-zA-Z_][a-zA-Z0-9_]*')
# Units that are not base units, by the naming rules.
WRONG_UNITS = re.compile(r'_(ns|us|ms|milliseconds|nanoseconds|minutes|kb|mb|'
                         r'kilobytes|percent)(_total)?$')
DEVICE = {'device': 'soft',
          'quoted': 'a "b" \\ {c="d"} # e\nf\tg\x01',
          'text': 'gr\u00fc\u00df \U0001f525 \ufffd\ufffd \ufffd\ufffd\ufffd'}


class Refused(Exception):
    pass


def read_labels(text, at):
    """The labels from the brace at `at`, and what is behind them."""
    labels = {}
    at += 1
    while text[at] != '}':
        match = LABEL.match(text, at)
        if not match or not text.startswith('="', match.end()):
            raise Refused(f'no label at {text[at:at + 20]!r}')
        at, value = match.end() + 2, ''
        while text[at] != '"':
            if text[at] == '\\':
                at += 1
                if text[at] not in '\\"n':
                    raise Refused(f'an escape \\{text[at]}')
            value += '\n' if text[at - 1:at + 1] == '\\n' else text[at]
            at += 1
        if match.group() in labels:
            raise Refused(f'label {match.group()} twice')
        labels[match.group()] = value
        at += 1
        if text[at] == ',':
            at += 1
        elif text[at] != '}':
            raise Refused(f'{text[at]!r} behind a label')
    return labels, at + 1


def read_prometheus(text):
    """{name: (type, labels, value text)}; refuses what the format does not
    allow, or what its naming rules forbid."""
    if not text.endswith('\n'):
        raise Refused('no newline at the end')
    helps, types, samples = {}, {}, {}
    for line in text[:-1].split('\n'):
        if line.startswith('# '):
            word, name, rest = line[2:].split(' ', 2)
            into = {'HELP': helps, 'TYPE': types}[word]
            if name in into or name in samples:
                raise Refused(f'{word} of {name} too late, or twice')
            into[name] = rest
            continue
        match = NAME.match(line)
        if not match:
            raise Refused(f'no name in {line!r}')
        name, at, labels = match.group(), match.end(), {}
        if line[at] == '{':
            labels, at = read_labels(line, at)
        if line[at] != ' ':
            raise Refused(f'no blank before the value in {line!r}')
        float(line[at + 1:])
        if name in samples:
            raise Refused(f'{name} twice')
        if name not in helps or name not in types:
            raise Refused(f'{name} without HELP and TYPE')
        if (types[name] == 'counter') != name.endswith('_total'):
            raise Refused(f'{name} is a {types[name]}')
        if WRONG_UNITS.search(name) or not name.startswith('kiln_'):
            raise Refused(f'the name {name}')
        samples[name] = (types[name], labels, line[at + 1:])
    if set(helps) != set(samples) or set(types) != set(samples):
        raise Refused('HELP or TYPE without a sample')
    return samples


def metric_of(field, is_counter):
    name = 'kiln_' + field
    if name.endswith('_ns'):
        name = name[:-3] + '_seconds'
    return name + ('_total' if is_counter else '')


def self_test():
    """The reader refuses what is wrong."""
    good = '# HELP kiln_a_total a\n# TYPE kiln_a_total counter\n' \
           'kiln_a_total{b="c"} 1\n'
    read_prometheus(good)
    for bad in (good[:-1], good.replace('counter', 'gauge'),
                good.replace('kiln_a_total', 'kiln_a_ns_total'),
                good + 'kiln_a_total 2\n', good.replace('"c"', '"\\x"'),
                good.replace('{b="c"}', '{b="c",b="d"}'),
                good.replace('# HELP kiln_a_total a\n', '')):
        try:
            read_prometheus(bad)
        except Refused:
            continue
        raise SystemExit(f'accepted: {bad!r}')


def main():
    self_test()
    texts = {}
    for name in ('prometheus', 'json'):
        run = subprocess.run([sys.argv[1], name], stdout=subprocess.PIPE,
                             check=True)
        texts[name] = run.stdout.decode('utf-8', 'strict')
    samples = read_prometheus(texts['prometheus'])
    data = json.loads(texts['json'])
    assert data['labels'] == DEVICE, data['labels']
    assert all(labels == DEVICE for _, labels, _ in samples.values())
    assert data['enabled'] is True
    assert float(samples['kiln_telemetry_enabled'][2]) == 1
    seen = {'kiln_telemetry_enabled'}
    for group in ('counters', 'now', 'cache'):
        for field, value in data[group].items():
            name = metric_of(field, group != 'now')
            text = samples[name][2]
            digits = text.replace('.', '') if '.' in text else text
            assert int(digits) == value, (name, text, value)
            seen.add(name)
    assert seen == set(samples), seen ^ set(samples)
    rates = data['rates']
    counters = data['counters']
    hits, misses = counters['transient_hits'], counters['transient_misses']
    assert abs(rates['transient_hits'] - hits / (hits + misses)) < 1e-6
    assert all(value is None or 0 <= value for value in rates.values())
    print(f'{len(samples)} samples, {len(rates)} rates')


main()
