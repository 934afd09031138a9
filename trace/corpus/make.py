"""Makes the pickles of this folder again: python3 make.py, in this folder.

good_* must be read, bad_* refused. They are what the fuzzer starts from, and what corpus_test cuts and changes at every byte.
Files named found_* were found by the fuzzer; they are kept as they are. The .tmt files are good_protocol4.pickle through //trace:convert.
"""
import gzip
import pickle
import struct


def frame(name):
    return {'name': name, 'filename': 'model.py', 'line': 7}


FRAMES = [frame('inner'), frame('outer')]


def event(action, address, size, **more):
    return {'action': action, 'addr': address, 'size': size, 'stream': 0, 'time_us': 1759252584402607, **more}


def block(address, size, state, **more):
    return {'address': address, 'size': size, 'requested_size': size - 8, 'state': state, **more}


def segment(device, address, blocks, **more):
    return {'device': device, 'address': address, 'total_size': 2097152, 'allocated_size': 512, 'active_size': 512,
            'requested_size': 504, 'stream': 0, 'segment_type': 'small', 'blocks': blocks, **more}


BASE = 0x7f0000000000
SNAPSHOT = {
    'segments': [segment(0, BASE, [block(BASE, 512, 'active_allocated', frames=FRAMES),
                                   block(BASE + 512, 2096640, 'inactive', frames=[])],
                         segment_pool_id=(0, 0), is_expandable=False, frames=FRAMES),
                 segment(1, BASE + 2**30, [block(BASE + 2**30, 2097152, 'active_pending_free', frames=FRAMES[:1])],
                         segment_pool_id=(0, 1), is_expandable=True, frames=[])],
    'device_traces': [[event('segment_alloc', BASE, 2097152, frames=FRAMES, pool_id=(0, 0)),
                       event('alloc', BASE, 504, frames=list(FRAMES), user_metadata='step 1', pool_id=(0, 0)),
                       {'action': 'oom', 'device_free': 0, 'size': 2**40, 'stream': 94000}],
                      [event('annotate', BASE + 2**30, 2097144, pool_id=(0, 1), compile_context='N/A')]],
    'allocator_settings': {'PYTORCH_CUDA_ALLOC_CONF': 'max_split_size_mb:64', 'max_split_size': 67108864,
                           'garbage_collection_threshold': 0.6, 'expandable_segments': False,
                           'roundup_power2_divisions': {str(1 << i): 0 for i in range(16)}},
    'external_annotations': [],
    'unknown': [None, True, (1, 2, 3), {'a': b'bytes'}, {1, 2}, 2**70, 1.5],
}
TINY = {'segments': [{'device': 0, 'address': 512, 'total_size': 9, 'stream': 0, 'blocks': [{'size': 9, 'state': 'inactive'}]}],
        'device_traces': [[{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0, 'pool_id': (0, 0),
                            'frames': [{'name': 'f', 'filename': 'g', 'line': 1}]}]]}
OLD = {'segments': [{k: v for k, v in segment(0, BASE, [
    {'size': 512, 'requested_size': 504, 'state': 'active_allocated',
     'history': [{'addr': BASE, 'real_size': 504, 'frames': FRAMES}]},
    {'size': 2096640, 'requested_size': 0, 'state': 'inactive'}]).items()}], 'device_traces': [[]]}
PLAIN = {k: v for k, v in SNAPSHOT.items() if k != 'unknown'}


class Code:
    def __reduce__(self):
        return print, ('this must never appear',)


def write(name, data):
    with open(name, 'wb') as file:
        file.write(data)


def fast(value, protocol):
    class Bytes(list):
        write = list.append
    parts = Bytes()
    pickler = pickle.Pickler(parts, protocol)
    pickler.fast = True
    pickler.dump(value)
    return b''.join(parts)


def main():
    write('good_tiny.pickle', fast(TINY, 2))
    for protocol in range(6):
        write(f'good_protocol{protocol}.pickle', pickle.dumps(SNAPSHOT if protocol > 3 else PLAIN, protocol))
    write('good_fast.pickle', fast(SNAPSHOT, 4))
    write('good_2_0.pickle', pickle.dumps(OLD, 4))
    write('good_segments.pickle', pickle.dumps(SNAPSHOT['segments'], 4))
    write('good_members.pickle.gz', gzip.compress(pickle.dumps(PLAIN, 4)[:100], mtime=0)
          + gzip.compress(pickle.dumps(PLAIN, 4)[100:], mtime=0))
    write('bad_code.pickle', pickle.dumps({'segments': [], 'x': Code()}, 4))
    write('bad_code0.pickle', pickle.dumps({'segments': [], 'x': Code()}, 0))
    cycle = dict(TINY)
    cycle['x'] = [cycle]
    write('bad_cycle.pickle', pickle.dumps(cycle, 4))
    write('bad_size.pickle', pickle.dumps({'segments': [], 'device_traces': [[event('alloc', 512, -512)]]}, 4))
    write('bad_text.pickle', pickle.dumps({'segments': [], 'device_traces': [[event('alloc', '512', 512)]]}, 4))
    write('bad_list.pickle', pickle.dumps([1, 2, 3], 4))
    write('bad_length.pickle', b'\x80\x04\x8d' + struct.pack('<Q', 10**10) + b'text.')
    write('bad_cut.pickle.gz', gzip.compress(pickle.dumps(PLAIN, 4), mtime=0)[:-9])


if __name__ == '__main__':
    main()
