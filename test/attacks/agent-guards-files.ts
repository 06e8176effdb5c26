/** Lists the guards of files and folders: of their paths, owners, modes and content, and of the swap, the trial run and the snapshot. */
import type { AgentGuard } from './agent-guards.ts';

export const FILE_GUARDS: readonly AgentGuard[] = [
  {
    name: 'trusted-user',
    file: 'agent/state/trusted-path.ts',
    check: 'uid === 0 || uid === process.getuid?.()',
    planted: {
      'accepts every user': 'true',
      'accepts users of services': 'uid < 1000',
    },
  },
  {
    name: 'trusted-owner',
    file: 'agent/state/trusted-path.ts',
    check: '!isTrustedUser(found.uid)',
    planted: {
      'is removed': 'false',
      'looks only at the file itself': 'rest.length === 0 && !isTrustedUser(found.uid)',
    },
  },
  {
    name: 'trusted-target',
    file: 'agent/state/trusted-path.ts',
    check: "rest.unshift(...target.split('/').filter((part) => part !== ''))",
    planted: {
      'does not follow the link': 'undefined',
    },
  },
  {
    name: 'trusted-parents',
    file: 'agent/state/trusted-path.ts',
    check: 'await isWritable(found, rest.length === 0)',
    planted: {
      'is removed': 'false',
      'looks only at the file itself': 'rest.length === 0 && (await isWritable(found, true))',
    },
  },
  {
    name: 'trusted-sticky',
    file: 'agent/state/trusted-path.ts',
    check: 'found.isDirectory() && !isLast && (mode & STICKY) !== 0',
    planted: {
      'accepts a sticky folder at the end': 'found.isDirectory() && (mode & STICKY) !== 0',
      'accepts each folder': 'found.isDirectory() && !isLast',
    },
  },
  {
    name: 'others-write',
    file: 'agent/state/trusted-path.ts',
    check: '(mode & OTHERS_WRITE) !== 0',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'group-writes',
    file: 'agent/state/trusted-path.ts',
    check:
      '(mode & GROUP_WRITES) !== 0 && gid !== process.getgid?.() && !(await isEmptyStaff(gid))',
    planted: {
      'is removed': 'false',
      'accepts each group': '(mode & GROUP_WRITES) !== 0 && gid === undefined',
    },
  },
  {
    name: 'staff-members',
    file: 'agent/state/trusted-path.ts',
    check: '!isComplete || isMixed || isPrimary || !isLocked || hasMembers',
    planted: {
      'accepts members from elsewhere': 'isMixed || isPrimary || !isLocked || hasMembers',
      'accepts mixed sources': '!isComplete || isPrimary || !isLocked || hasMembers',
      'accepts a primary group': '!isComplete || isMixed || !isLocked || hasMembers',
      'accepts a password': '!isComplete || isMixed || isPrimary || hasMembers',
      'accepts members': '!isComplete || isMixed || isPrimary || !isLocked',
    },
  },
  {
    name: 'staff-name',
    file: 'agent/state/trusted-path.ts',
    check: 'groups.length > 0 && groups.every(([name]) => name === NAME)',
    planted: {
      'accepts each group without members': 'groups.length > 0',
      'accepts a group without a name': 'groups.every(([name]) => name === NAME)',
    },
  },
  {
    name: 'replaceable-file',
    file: 'agent/state/trusted-path.ts',
    check: "await unless('ENOENT', assertTrustedPath(path))",
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'made-parent',
    file: 'agent/state/trusted-path.ts',
    check: 'await assertTrustedPath(dirname(directory))',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'made-link',
    file: 'agent/state/trusted-path.ts',
    check: 'constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW',
    planted: {
      'follows a link': 'constants.O_RDONLY | constants.O_DIRECTORY',
    },
  },
  {
    name: 'made-owner',
    file: 'agent/state/trusted-path.ts',
    check: '!isTrustedUser(uid)',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'made-private',
    file: 'agent/state/trusted-path.ts',
    check: '(mode & 0o777) !== 0o700',
    planted: {
      'is removed': 'false',
      'accepts readers': '(mode & 0o022) !== 0',
    },
  },
  {
    name: 'config-named',
    file: 'agent/state/trusted-config.ts',
    check: '[...files, ...named]',
    planted: {
      'looks only at the kubeconfig': '[...files]',
    },
  },
  {
    name: 'config-path',
    file: 'agent/state/trusted-config.ts',
    check: 'assertTrustedPath(resolve(file))',
    planted: {
      'is removed': 'Promise.resolve()',
    },
  },
  {
    name: 'flags-path',
    file: 'agent/flags-file.ts',
    check: 'await assertTrustedPath(path)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'state-path',
    file: 'agent/state/state-directory.ts',
    check: 'await assertTrustedPath(path)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'state-entries',
    file: 'agent/state/state-directory.ts',
    check: 'found.isSymbolicLink() || !isTrustedUser(found.uid)',
    planted: {
      'accepts links': '!isTrustedUser(found.uid)',
    },
  },
  {
    name: 'state-files',
    file: 'agent/state/state-directory.ts',
    check: 'await assertTrustedPath(join(path, name))',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'state-private',
    file: 'agent/state/state-directory.ts',
    check: 'mkdir(path, { mode: 0o700 })',
    planted: {
      'is removed': 'mkdir(path)',
    },
  },
  {
    name: 'lock-holder',
    file: 'agent/state/lock.ts',
    check: 'isSameProcess(findProcess(holder.pid), holder)',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'kept-verified',
    file: 'agent/state/kept-binary.ts',
    check: 'found !== undefined && found !== known.sha256',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'kept-taken',
    file: 'agent/state/kept-binary.ts',
    check: 'found?.isFile() !== true || (await hashFile(path, files)) !== sha256',
    planted: {
      'accepts any hash': 'found?.isFile() !== true',
      'follows a link': '(await hashFile(path, files)) !== sha256',
    },
  },
  {
    name: 'kept-needed',
    file: 'agent/state/kept-binary.ts',
    check: 'installed?.isFile() === true && installed.size > 0',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'restart-path',
    file: 'agent/perform-step.ts',
    check: 'await fileTrust.assertReplaceable(work.binary)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'staging-folder',
    file: 'agent/perform-step.ts',
    check: 'fileTrust.makePrivate(staging)',
    planted: {
      'is removed': 'files.mkdir(staging, { recursive: true })',
    },
  },
  {
    name: 'take-path',
    file: 'agent/perform-step.ts',
    check: 'await fileTrust.assertReplaceable(previous)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'keep-path',
    file: 'agent/perform-step.ts',
    check: 'await fileTrust.assertReplaceable(work.binary)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'keep-other',
    file: 'agent/perform-step.ts',
    check: '!forceupdate && (await isSameContent(path, staged, files))',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'swap-path',
    file: 'agent/perform-step.ts',
    check: 'await fileTrust.assertReplaceable(work.binary)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'swap-stamp',
    file: 'agent/perform-step.ts',
    check: 'then === `${await stampOf(staged)} ${wanted}`',
    planted: {
      'is removed': 'true',
      'looks only at the hash': 'then.endsWith(` ${wanted}`)',
    },
  },
  {
    name: 'swap-copy',
    file: 'agent/perform-step.ts',
    check: '!isTried || identityOf(path) !== identityOf(staged)',
    planted: {
      'does not hash the copy': '!isTried',
    },
  },
  {
    name: 'swap-hash',
    file: 'agent/perform-step.ts',
    check: 'wanted === undefined || found !== wanted',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'back-path',
    file: 'agent/perform-step.ts',
    check: 'await fileTrust.assertReplaceable(previous)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'back-hash',
    file: 'agent/perform-step.ts',
    check: 'await kept?.verify(previous)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'same-bytes',
    file: 'agent/perform-step.ts',
    check: '(await hashFile(path, files)) === (await hashFile(other, files))',
    planted: {
      'looks only at the size': 'true',
    },
  },
  {
    name: 'trial-link',
    file: 'agent/trial/trial-run.ts',
    check: 'constants.O_RDONLY | constants.O_NOFOLLOW',
    planted: {
      'follows a link': 'constants.O_RDONLY',
    },
  },
  {
    name: 'trial-hash',
    file: 'agent/trial/trial-run.ts',
    check: 'found !== sha256',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'trial-user',
    file: 'agent/trial/trial-run.ts',
    check: 'process.getuid?.() === 0',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'trial-left',
    file: 'agent/trial/trial-run.ts',
    check: 'user !== undefined && user !== NOBODY',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'trial-rights',
    file: 'agent/trial/confine.ts',
    check: "'--no-new-privs'",
    planted: {
      'is removed': "'--no-new-privs'.slice(0, 2)",
    },
  },
  {
    name: 'snapshot-program',
    file: 'agent/snapshot/take-snapshot.ts',
    check: 'await fileTrust.assertTrusted(binary)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'snapshot-folder',
    file: 'agent/snapshot/take-snapshot.ts',
    check: 'await fileTrust.makePrivate(directory)',
    planted: {
      'is removed': 'await mkdir(directory, { recursive: true })',
    },
  },
  {
    name: 'snapshot-found',
    file: 'agent/snapshot/take-snapshot.ts',
    check: 'await fileTrust.makePrivate(directory)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'snapshot-place',
    file: 'agent/snapshot/take-snapshot.ts',
    check: 'path !== join(directory, name) || !name.startsWith(PREFIX)',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'snapshot-same',
    file: 'agent/snapshot/take-snapshot.ts',
    check: 'found?.isFile() !== true',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'snapshot-hash',
    file: 'agent/snapshot/take-snapshot.ts',
    check: '(await hashFile(path, files)) === sha256',
    planted: {
      'is removed': 'true',
    },
  },
  {
    name: 'snapshot-whole',
    file: 'agent/snapshot/etcd-entry.ts',
    check: 'bytes > HASH_BYTES && hash.digest().equals(end)',
    planted: {
      'is removed': 'true',
      'looks only at the size': 'bytes > HASH_BYTES',
    },
  },
  {
    name: 'root-folder',
    file: 'agent/configuration/root-file.ts',
    check: 'await assertTrustedPath(folder)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'root-link',
    file: 'agent/configuration/root-file.ts',
    check: '(await realpath(folder)) !== folder',
    planted: {
      'is removed': 'false',
    },
  },
  {
    name: 'root-regular',
    file: 'agent/configuration/root-file.ts',
    check: '!found.isFile() || found.nlink !== 1 || found.size > 1024 * 1024',
    planted: {
      'accepts a pipe': 'found.isFile() && (found.nlink !== 1 || found.size > 1024 * 1024)',
      'accepts a second name': '!found.isFile() || found.size > 1024 * 1024',
    },
  },
  {
    name: 'root-writable',
    file: 'agent/configuration/root-file.ts',
    check: 'await assertTrustedPath(path)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'root-again',
    file: 'agent/configuration/root-file.ts',
    check: 'await readRootFile(path)',
    planted: {
      'is removed': 'undefined',
    },
  },
  {
    name: 'keys-user',
    file: 'agent/configuration/change-host.ts',
    check: '{ input, patienceMs: USER_PATIENCE_MS, as }',
    planted: {
      'runs as root': '{ input, patienceMs: USER_PATIENCE_MS, as: { env: as.env } }',
    },
  },
];
