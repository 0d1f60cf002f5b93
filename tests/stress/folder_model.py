"""What a folder would be after a crash at any call that changed it: a model of a file system, fed with the calls
that tests/support/file_points.c wrote down. A file has a content and one that is synced, a folder has names and those
that are synced; only fsync of the one or the other makes them the same, which is less than real file systems promise.

  killed     the process died: everything that was done is there
  lost       the machine lost power: unsynced names and unsynced bytes are gone
  bytes_lost the same, but names outlive the bytes: files that are shorter than they were written, or empty
  names_lost the same, but bytes outlive the names: renames and removals are undone"""
import hashlib
import os
import pathlib
import shutil

KINDS = ('killed', 'lost', 'bytes_lost', 'names_lost')
LARGE = 1 << 20  # bytes: from here on a file is linked into a state and not copied


class Contents:
    """Contents by their sum, on disk."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)

    def put(self, data):
        name = hashlib.sha256(data).hexdigest()
        if not (self.folder / name).exists():
            (self.folder / name).write_bytes(data)
        return name


class Node:
    def __init__(self, kind, target=''):
        self.kind, self.target = kind, target  # 'file', 'folder', 'link'
        self.data, self.sum = bytearray(), None
        self.synced = None  # sum, or of a folder its names
        self.names = {}
        self.fixed = None  # a file of before: its path


class Call:
    def __init__(self, line):
        fields = line.rstrip('\n').split('\t')
        self.number, self.call, self.result = int(fields[0]), fields[1], fields[2]
        self.inode, self.offset, self.count, self.place = map(int, fields[3:7])
        self.flags, self.path, self.other = int(fields[7], 8), fields[8], fields[9]

    def __str__(self):
        size = f' {self.count} bytes' if self.call in ('write', 'truncate', 'fallocate') else ''
        return f'{self.call}{size} {self.path}{" -> " + self.other if self.other else ""}'


def read_calls(path):
    if not os.path.exists(path):
        return []
    with open(path, errors='surrogateescape') as lines:
        return [Call(line) for line in lines]


class FolderModel:
    def __init__(self, root, contents, data):
        """`root` as it is now, taken for synced; `data`: the bytes of its writes."""
        self.root, self.contents = str(root), contents
        self.written = open(data, 'rb') if os.path.exists(data) else None
        self.inodes = {}  # number in the calls: node
        self.top = self.read(pathlib.Path(root))

    def read(self, path):
        if path.is_symlink():
            return Node('link', os.readlink(path))
        if not path.is_dir():
            node = Node('file')
            node.sum = node.synced = self.contents.put(path.read_bytes())
            node.data = None
            node.fixed = str(path)
        else:
            node = Node('folder')
            for entry in path.iterdir():
                node.names[entry.name] = self.read(entry)
            node.synced = dict(node.names)
        self.inodes[os.stat(path).st_ino] = node
        return node

    def close(self):
        if self.written:
            self.written.close()

    # -- names

    def folder_of(self, path):
        assert path.startswith(self.root + '/'), path
        *folders, name = path[len(self.root) + 1:].split('/')
        node = self.top
        for folder in folders:
            node = node.names[folder]
        return node, name

    def find(self, path):
        if path == self.root:
            return self.top
        folder, name = self.folder_of(path)
        return folder.names.get(name)

    # -- calls

    def bytes_of(self, call):
        self.written.seek(call.place)
        return self.written.read(call.count)

    def file_of(self, call):
        if call.inode in self.inodes:
            return self.inodes[call.inode]
        node = None if '(deleted)' in call.path else self.find(call.path)
        node = node or Node('file')
        self.inodes[call.inode] = node
        return node

    def writable(self, node):
        if node.data is None:
            node.data = bytearray((self.contents.folder / node.sum).read_bytes())
        node.sum = None
        return node.data

    def write(self, call, data):
        into = self.writable(self.file_of(call))
        at = len(into) if call.offset < 0 else call.offset
        if at > len(into):
            into.extend(bytes(at - len(into)))
        into[at:at + len(data)] = data

    def is_named(self, call):
        return '(deleted)' not in call.path

    def forget(self, node):
        """Its number is given out again."""
        for inode in [i for i, n in self.inodes.items() if n is node]:
            del self.inodes[inode]

    def apply(self, call):
        try:
            getattr(self, 'do_' + call.call)(call)
        except KeyError:
            pass  # the real call failed too: there is no such name

    def do_open(self, call):
        if call.flags & 0o20000000 or not call.flags & 0o1100:  # no name, or nothing that changes
            return
        folder, name = self.folder_of(call.path)
        if name not in folder.names:
            folder.names[name] = Node('file')
        elif call.flags & 0o1000:
            self.writable(folder.names[name]).clear()

    def do_write(self, call):
        self.write(call, self.bytes_of(call))

    def do_truncate(self, call):
        into = self.writable(self.file_of(call))
        del into[call.count:]
        into.extend(bytes(call.count - len(into)))

    def do_fallocate(self, call):
        into = self.writable(self.file_of(call))
        into.extend(bytes(max(0, call.offset + call.count - len(into))))

    def do_fsync(self, call):
        node = None if '(deleted)' in call.path else self.find(call.path)
        if node is not None and node.kind == 'folder':
            node.synced = dict(node.names)
        else:
            node = self.file_of(call)
            node.synced = self.sum_of(node)

    def do_rename(self, call):
        folder, name = self.folder_of(call.path)
        node = folder.names.pop(name)
        to, to_name = self.folder_of(call.other)
        self.forget(to.names.get(to_name))
        to.names[to_name] = node

    def do_link(self, call):
        to, name = self.folder_of(call.other)
        to.names.setdefault(name, self.file_of(call))  # a link replaces nothing

    def do_symlink(self, call):
        folder, name = self.folder_of(call.path)
        folder.names.setdefault(name, Node('link', call.other))

    def do_unlink(self, call):
        folder, name = self.folder_of(call.path)
        self.forget(folder.names.pop(name, None))

    def do_mkdir(self, call):
        folder, name = self.folder_of(call.path)
        folder.names[name] = Node('folder')
        folder.names[name].synced = {}

    do_rmdir = do_unlink

    def do_close(self, call):
        self.inodes.pop(call.inode, None)

    # -- states

    def sum_of(self, node):
        if node.sum is None:
            node.sum = self.contents.put(bytes(node.data))
        return node.sum

    def state(self, kind):
        """{path below the root: ('file', sum, path of before), ('folder',) or ('link', target)}."""
        keeps_names, keeps_bytes = kind in ('killed', 'bytes_lost'), kind in ('killed', 'names_lost')
        found = {}

        def walk(folder, path):
            for name, node in (folder.names if keeps_names else folder.synced).items():
                at = f'{path}{name}'
                if node.kind == 'folder':
                    found[at] = ('folder',)
                    walk(node, at + '/')
                elif node.kind == 'link':
                    found[at] = ('link', node.target)
                else:
                    content = self.sum_of(node) if keeps_bytes else node.synced
                    content = content or self.contents.put(b'')
                    same = node.fixed if content == node.synced and node.data is None else None
                    found[at] = ('file', content, same)

        walk(self.top, '')
        return found


def without_logs(state):
    """The C library writes a rank's log, through a FILE, past the preloaded library."""
    return {path: entry for path, entry in state.items() if '/log/' not in path}


def key_of(state):
    """What makes two states the same."""
    lines = sorted(f'{path} {entry[:2]}' for path, entry in state.items())
    return hashlib.sha256('\n'.join(lines).encode(errors='surrogateescape')).hexdigest()


def make_state(state, root, contents, originals):
    """The folder `root` as `state` says; files that stay as they were keep their time of change."""
    shutil.rmtree(root, ignore_errors=True)
    os.makedirs(root, mode=0o700)
    for path, entry in sorted(state.items()):
        at = os.path.join(root, path)
        if entry[0] == 'folder':
            os.makedirs(at, mode=0o700, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(at), mode=0o700, exist_ok=True)
        if entry[0] == 'link':
            os.symlink(entry[1], at)
            continue
        source = contents.folder / entry[1]
        kept = originals / path
        if source.stat().st_size >= LARGE and path.endswith('.safetensors'):
            os.link(source, at)  # nothing writes into these
        elif entry[2] and kept.exists():
            shutil.copy2(kept, at)
        else:
            shutil.copyfile(source, at)
            os.chmod(at, 0o600)


def state_of_disk(root):
    """A real folder in the form of FolderModel.state('killed')."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            at = os.path.join(folder, name)
            path = os.path.relpath(at, root)
            if os.path.islink(at):
                found[path] = ('link', os.readlink(at))
            elif os.path.isdir(at):
                found[path] = ('folder',)
            else:
                with open(at, 'rb') as file:
                    found[path] = ('file', hashlib.file_digest(file, 'sha256').hexdigest()
                                   if hasattr(hashlib, 'file_digest') else hashlib.sha256(file.read()).hexdigest())
    return found
