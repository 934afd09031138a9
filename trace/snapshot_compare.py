"""What the C reader holds of snapshots, against what Python's own pickle.load holds.

    snapshot_compare.py DUMP FILE...    compares files
    snapshot_compare.py DUMP            compares random snapshots of every layout, protocol and way of pickling

DUMP is the program //trace:snapshot_dump. Pickles are loaded with an unpickler that refuses every name.
"""
import gzip
import io
import json
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile

STATES = {'inactive': 0, 'active_allocated': 1, 'active_pending_free': 2, 'active_awaiting_free': 2}
ACTIONS = ('alloc', 'free_requested', 'free_completed', 'segment_alloc', 'segment_free', 'segment_map',
           'segment_unmap', 'snapshot', 'oom', 'user_defined', 'annotate')


class DataUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f'{module}.{name} is no data')


def load(path):
    with (gzip.open if path.endswith('.gz') else open)(path, 'rb') as file:
        return DataUnpickler(file).load()


# ---- What is to be expected, worked out in the plainest way.

def clean(text):
    """As UTF-8: each byte of what is none, and a 0, is a question mark."""
    return re.sub('[\ud800-\udfff]', '???', text).replace('\0', '?')


def frames_of(frames):
    if not frames:
        return None
    return [[clean(f['name']), clean(f['filename']), min(max(f['line'] or 0, 0), 2**32 - 1)] for f in frames]


def expected(snapshot):
    if isinstance(snapshot, list):
        snapshot = {'segments': snapshot}
    traces = snapshot.get('device_traces') or []
    settings = snapshot.get('allocator_settings') or {}
    divisions = settings.get('roundup_power2_divisions') or {}
    devices = max([len(traces)] + [s['device'] + 1 for s in snapshot['segments']])
    yield {'trace': devices, 'pool_ids': any('pool_id' in e for t in traces for e in t), 'settings': bool(settings),
           'config': settings.get('PYTORCH_CUDA_ALLOC_CONF', ''), 'max_split': settings.get('max_split_size', -1),
           'threshold': settings.get('garbage_collection_threshold', 0.0),
           'expandable': settings.get('expandable_segments', False),
           'divisions': [divisions.get(str(1 << i), 0) for i in range(16)]}
    for device, trace in enumerate(traces):
        for e in trace:
            yield {'event': e['action'], 'device': device, 'address': e.get('device_free', e.get('addr', 0)),
                   'size': e['size'], 'time': e.get('time_us', 0),
                   'metadata': clean(e['user_metadata']) if e.get('user_metadata') else None,
                   'stream': e['stream'], 'pool': list(e.get('pool_id', (0, 0))), 'frames': frames_of(e.get('frames'))}
    for s in sorted(snapshot['segments'], key=lambda s: (s['device'], s['address'])):
        blocks, address = [], s['address']
        for b in s['blocks']:
            history = b.get('history') or []
            address = b.get('address', address)
            requested = b.get('requested_size', history[0]['real_size'] if history else 0)
            frames = frames_of(b.get('frames')) or (frames_of(history[0].get('frames')) if history else None)
            blocks.append({'block': address, 'size': b['size'], 'requested': requested,
                           'state': STATES[b['state']], 'frames': frames})
            address += b['size']
        requested = s.get('requested_size', sum(b['requested'] for b in blocks if b['state'] != 0))
        yield {'segment': s['address'], 'device': s['device'],
               'sizes': [s['total_size'], s['allocated_size'], s['active_size'], requested],
               'large': s['segment_type'] == 'large', 'expandable': s.get('is_expandable', False),
               'stream': s['stream'], 'pool': list(s.get('segment_pool_id', (0, 0))),
               'frames': frames_of(s.get('frames'))}
        yield from sorted(blocks, key=lambda b: b['block'])


def compare(dump, paths):
    """How many lines agreed; the first difference ends the program."""
    output = subprocess.run([dump, *paths], stdout=subprocess.PIPE, check=True).stdout.decode()
    got = [json.loads(line) for line in output.splitlines()]
    position, agreed = 0, 0
    for path in paths:
        assert got[position] == {'file': path}, got[position]
        position += 1
        for number, want in enumerate(expected(load(path))):
            if position >= len(got) or got[position] != want:
                sys.exit(f'{path}: line {number} differs\n  Python: {json.dumps(want)}\n  reader: '
                         f'{json.dumps(got[position]) if position < len(got) else "nothing more"}')
            position, agreed = position + 1, agreed + 1
        if position < len(got) and 'file' not in got[position]:
            sys.exit(f'{path}: the reader holds more than Python: {json.dumps(got[position])}')
    return agreed


# ---- Random snapshots.

class Maker:
    def __init__(self, seed, layout):
        self.random = random.Random(seed)
        self.layout = layout
        names = ['forward', 'backward', 'größe', '<lambda>', 'a"b\\c', '\udc80odd', '名前', 'x' * 300, 'nul\0inside', '']
        self.frames = [{'name': self.random.choice(names), 'filename': self.random.choice(names),
                        'line': self.random.choice([0, 1, 255, 256, 65536, 2**31, -1])} for _ in range(12)]
        for frame in self.frames[::3]:
            frame.update({'fx_node_op': 'call_function', 'fx_extra': [1, None]})
        self.stacks = [[self.random.choice(self.frames) for _ in range(self.random.randrange(4))] for _ in range(8)]

    def unknown(self, depth=0):
        """Something nobody knows, to be passed over."""
        r = self.random
        kind = r.randrange(14 if depth < 4 else 8)
        if kind < 8:
            return [None, True, -5, 2**70, -2**63, 1.5, b'bytes\n', 'text'][kind]
        if kind == 8:
            return [self.unknown(depth + 1) for _ in range(r.choice([0, 1, 2, 5, 30]))]
        if kind == 9:
            return tuple(self.unknown(depth + 1) for _ in range(r.randrange(6)))
        if kind == 10:
            return {r.choice(['action', 'size', 'state', 'k', 7, 'line']): self.unknown(depth + 1)
                    for _ in range(r.choice([0, 1, 2, 4]))}
        if kind == 11:
            return self.event()  # a look-alike: none of the device's
        if kind == 12:
            return [self.event() for _ in range(r.randrange(3))]
        return {'segments': [], 'device_traces': [[self.event()]]}

    def shuffled(self, items, extra=0.1):
        pairs = list(items.items())
        if self.random.random() < extra:
            pairs.append((self.random.choice(['new_key', 'compile_context', 'forward_frames']), self.unknown(3)))
        if self.random.random() < 0.3:
            self.random.shuffle(pairs)
        return dict(pairs)

    def stack(self):
        stack = self.random.choice(self.stacks)
        return stack if self.random.random() < 0.5 else list(stack)

    def event(self):
        r = self.random
        action = r.choice(ACTIONS)
        event = {'action': action, 'device_free' if action == 'oom' else 'addr': r.choice([0, 2**47 + 512, 2**63 + 7, 512]),
                 'size': r.choice([0, 255, 256, 65536, 2**31, 2**32, 2**62, 2**63 - 1]), 'stream': r.choice([0, 0, 93824, 2**40])}
        if self.layout >= 22:
            event['time_us'] = 1759252584402607 + r.randrange(10**6)
        if r.random() < 0.7:
            event['frames'] = self.stack()
        if self.layout >= 210:
            event['compile_context'] = 'N/A'
            event['user_metadata'] = r.choice(['', 'step 1', 'größe'])
        if self.layout >= 215:
            event['pool_id'] = r.choice([(0, 0), (0, 3), (2**20, 0), [0, 1]])
        return self.shuffled(event)

    def block(self, address):
        r = self.random
        size = 512 * r.randrange(1, 100)
        block = {'address': address, 'size': size, 'requested_size': size - r.randrange(512), 'state': r.choice(list(STATES)),
                 'frames': self.stack()}
        if self.layout < 21:
            del block['address'], block['frames']
            if r.random() < 0.7:
                block['history'] = [{'addr': address, 'real_size': size - 1, 'frames': self.stack()}
                                    for _ in range(r.randrange(3))]
            if r.random() < 0.5:
                del block['requested_size']
        return size, self.shuffled(block)

    def segment(self, device, address):
        r = self.random
        blocks, at = [], address
        for _ in range(r.choice([0, 1, 1, 3, 9])):
            size, block = self.block(at)
            blocks.append(block)
            at += size
        segment = {'device': device, 'address': address, 'total_size': at - address, 'allocated_size': 512, 'active_size': 1024,
                   'requested_size': 100, 'stream': r.choice([0, 77]), 'segment_type': r.choice(['small', 'large']),
                   'blocks': blocks}
        if self.layout >= 21:
            segment.update({'segment_pool_id': r.choice([(0, 0), (1, 0)]), 'is_expandable': r.random() < 0.5,
                            'frames': self.stack()})
        elif r.random() < 0.5:
            del segment['requested_size']
        return self.shuffled(segment)

    def snapshot(self):
        r = self.random
        devices = r.choice([1, 1, 2, 4])
        segments = [self.segment(r.randrange(devices), r.randrange(1, 2**40) * 2**20) for _ in range(r.randrange(8))]
        traces = [[self.event() for _ in range(r.choice([0, 1, 2, 40]))] for _ in range(devices)]
        snapshot = {'segments': segments, 'device_traces': traces}
        if self.layout >= 23:
            snapshot['allocator_settings'] = {
                'PYTORCH_CUDA_ALLOC_CONF': r.choice(['', 'max_split_size_mb:64']), 'max_split_size': r.choice([-1, 2**26]),
                'garbage_collection_threshold': r.choice([0.0, 0.6]), 'expandable_segments': r.random() < 0.5,
                'pinned_num_register_threads': 1,
                'roundup_power2_divisions': {str(1 << i): r.randrange(9) for i in range(16)}}
        if self.layout >= 25:
            snapshot['external_annotations'] = [{'name': 'x', 'stage': 'START', 'device': 0, 'time_us': 5}]
        if self.layout >= 215:
            snapshot['host_segments'] = [self.segment(0, 4096)]
            snapshot['host_traces'] = [[self.event()], []]
        snapshot['not_known'] = self.unknown()
        if r.random() < 0.3:  # events and blocks that the file refers to before they come
            snapshot = {'unknown': traces[0][::2] + traces[-1][1::2] + [b for s in segments for b in s['blocks']][::3],
                        **snapshot}
        if r.random() < 0.3:
            pairs = list(snapshot.items())
            r.shuffle(pairs)
            snapshot = dict(pairs)
        return snapshot


def many_events():
    """More than a batch of the pickler, and lists of one."""
    maker = Maker(1, 215)
    events = [maker.event() for _ in range(1200)]
    events[7]['frames'] = [maker.frames[i % 12] for i in range(1700)]
    return {'device_traces': [events, [maker.event()]], 'segments': [maker.segment(0, 2**30)]}


def write(path, snapshot, protocol, memo):
    buffer = io.BytesIO()
    pickler = pickle._Pickler(buffer, protocol) if protocol < 2 else pickle.Pickler(buffer, protocol)
    pickler.fast = not memo  # no memo at all: every shared thing is written out again
    pickler.dump(snapshot)
    with (gzip.open(path, 'wb', 1) if path.endswith('.gz') else open(path, 'wb')) as file:
        file.write(buffer.getvalue())


def without_bytes(value):
    """Protocols 0 to 2 write bytes as a call of a codec, which is code."""
    if isinstance(value, dict):
        return {k: without_bytes(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(without_bytes(v) for v in value)
    return 'bytes' if isinstance(value, bytes) else value


def random_files(folder):
    paths = []

    def add(snapshot, protocol, memo, suffix=''):
        paths.append(os.path.join(folder, f'{len(paths)}_protocol{protocol}_{"memo" if memo else "fast"}.pickle{suffix}'))
        write(paths[-1], without_bytes(snapshot) if protocol < 3 else snapshot, protocol, memo)

    for layout in (20, 21, 22, 23, 25, 210, 215):
        for protocol in range(6):
            for memo in (True, False):
                seed = layout * 100 + protocol * 10 + memo
                add(Maker(seed, layout).snapshot(), protocol, memo, '.gz' if seed % 3 == 0 else '')
    for protocol in range(6):
        add(many_events(), protocol, True)
    maker = Maker(2, 211)
    add([maker.segment(0, 4096), maker.segment(0, 2**40)], 4, True)  # torch.cuda.memory_snapshot()
    return paths


def main():
    dump, paths = os.path.abspath(sys.argv[1]), sys.argv[2:]
    if paths:
        print(f'{compare(dump, paths)} lines of {len(paths)} files agree')
        return
    with tempfile.TemporaryDirectory() as folder:
        files = random_files(folder)
        print(f'{compare(dump, files)} lines of {len(files)} random files agree')


if __name__ == '__main__':
    main()
