/**
 * Lists the guards in the shell scripts for kubeadm hosts. Each guard is a check before root runs, trusts or replaces
 * something. Its attack succeeds as soon as the check is removed or weakened, and test/attacks/kubeadm-guards.test.ts
 * carries out both.
 */
import { chmod, chown, lstat, mkdir, readdir, readFile, symlink } from 'node:fs/promises';
import { kubeadmBody, repairScript, stepScript } from '../../src/dialects/kubeadm/host/scripts.ts';
import {
  both,
  config,
  diff,
  etcd,
  GOOD,
  type Guard,
  hashOf,
  interruptedRun,
  isAccepted,
  MANIFEST,
  modeOf,
  owns,
  PATHS,
  patches,
  prepare,
  probe,
  put,
  RESTORE,
  ROLLOUT,
  readsOption,
  runningKubelet,
  snapshot,
  stage,
  takeSnapshot,
  upgradedEtcd,
} from './kubeadm-guard-scenes.ts';
import { NOBODY } from './rig.ts';

const BINARIES = 'parts/binaries.sh';
const TRUSTED = 'parts/trusted.sh';

export const GUARDS: readonly Guard[] = [
  {
    name: 'binary-hash',
    file: BINARIES,
    check:
      '[ -z "$3" ] || [ "$(sha256sum <"$2")" = "$3  -" ] || { printf \'%s\\n\' "$FIELD.$1.sha256 does not match the file"; return; }',
    planted: { 'is removed': ':', 'only wants some file': '[ -z "$3" ] || [ -s "$2" ] || return' },
    attack: async (rig, change) => {
      await put(rig, rig.evil);
      return await owns(rig, change, stage(both('ab'.repeat(32))));
    },
  },
  {
    name: 'is-program',
    file: BINARIES,
    check: 'case $(head -c 4 "$2") in ?ELF | \'#!\'*) ;; *)',
    planted: { 'accepts any file': 'case yes in yes) ;; *)' },
    attack: async (rig, change) => {
      await put(rig, `touch ${rig.at('owned')}\n`);
      return await owns(rig, change, stage(PATHS));
    },
  },
  {
    name: 'checked-source',
    file: BINARIES,
    check: `COPY='' problem=$(untrusted "$R$SOURCE")`,
    planted: { 'is removed': `COPY='' problem=''` },
    attack: async (rig, change) => {
      await put(rig, rig.evil);
      await chmod(rig.at('srv'), 0o777);
      return await owns(rig, change, probe(PATHS));
    },
  },
  {
    name: 'checked-copy',
    file: BINARIES,
    check: '[ ! -e "$COPY" ] || wrong "$1" "$COPY" "$SHA256"',
    planted: { 'reads the file itself': '[ ! -e "$COPY" ] || wrong "$1" "$R$SOURCE" "$SHA256"' },
    attack: async (rig, change) => {
      await put(rig, GOOD);
      await rig.put('evil', rig.evil, 0o755);
      const swap = ['kubeadm', 'kubelet'].map(
        (name) => `cp ${rig.at('evil')} ${rig.at(`srv/${name}`)}`,
      );
      await rig.program('sha256sum', `PATH=/usr/bin:/bin; sha256sum "$@"; ${swap.join('; ')}`);
      return await owns(rig, change, probe(both(hashOf(GOOD))));
    },
  },
  {
    name: 'staged-hash',
    file: BINARIES,
    check: '[ -z "$(wrong "$1" "$D/staged/$1" "$SHA256")" ]; }',
    planted: {
      'is removed': 'true; }',
      'has no hash': '[ -z "$(wrong "$1" "$D/staged/$1" "")" ]; }',
    },
    attack: async (rig, change) => {
      await put(rig, GOOD);
      await put(rig, rig.evil, 'var/lib/refit/staged');
      return await owns(rig, change, prepare(both(hashOf(GOOD))));
    },
  },
  {
    name: 'staged-source',
    file: BINARIES,
    check:
      'problem=$(untrusted "$R$SOURCE")\n    [ -z "$problem" ] || fail "$FIELD.$1.path: $problem"',
    planted: { 'is removed': ':' },
    attack: async (rig, change) => {
      await put(rig, rig.evil);
      await chmod(rig.at('srv'), 0o777);
      return await owns(rig, change, stage(PATHS));
    },
  },
  {
    name: 'fetched-file',
    file: BINARIES,
    check: 'problem=$(wrong "$1" "$file.new" "$SHA256")',
    planted: { 'is removed': "problem=''" },
    attack: async (rig, change) => {
      await put(rig, rig.evil);
      return await owns(rig, change, prepare(both('ab'.repeat(32))));
    },
  },
  {
    name: 'path-owner',
    file: TRUSTED,
    check: 'if [ "$owner" != 0 ] && [ "$owner" != "$(id -u)" ]; then',
    planted: { 'is removed': 'if false; then' },
    needsRoot: true,
    attack: async (rig, change) => {
      await put(rig, rig.evil);
      await chown(rig.at('srv'), NOBODY, NOBODY);
      return await owns(rig, change, stage(PATHS));
    },
  },
  {
    name: 'path-parents',
    file: TRUSTED,
    check:
      'if [ -d "$next" ] && [ -k "$next" ]; then :; elif others_write "$next"; then return 0; fi',
    planted: { 'is removed': ':' },
    attack: async (rig, change) => {
      await put(rig, rig.evil);
      await chmod(rig.at('srv'), 0o777);
      return await owns(rig, change, stage(PATHS));
    },
  },
  {
    name: 'path-end',
    file: TRUSTED,
    check: '[ -z "$at" ] || others_write "$at" || true',
    planted: { 'is removed': ':' },
    attack: async (rig, change) => {
      const folder = await patches(rig);
      await chmod(folder, 0o1777);
      return await readsOption(rig, change, { patches: folder });
    },
  },
  {
    name: 'path-mode',
    file: TRUSTED,
    check: 'if [ $((0$mode & 2)) = 0 ]; then',
    planted: {
      'is removed': 'return 1\n  if true; then',
      'ignores the group': 'if [ $((0$mode & 2)) = 0 ]; then\n    return 1',
    },
    needsRoot: true,
    attack: async (rig, change) => {
      await put(rig, rig.evil);
      await chown(rig.at('srv'), 0, NOBODY);
      await chmod(rig.at('srv'), 0o775);
      return await owns(rig, change, stage(PATHS));
    },
  },
  {
    name: 'option-files',
    file: TRUSTED,
    check: 'for file in "$2"/* "$2"/.[!.]*; do',
    planted: {
      'looks at none': 'for file in; do',
      'skips names with a dot': 'for file in "$2"/*; do',
    },
    attack: async (rig, change) => {
      const folder = await patches(rig);
      await rig.put('patches/.etcd.json', '[]');
      await chmod(rig.at('patches/.etcd.json'), 0o666);
      return await readsOption(rig, change, { patches: folder });
    },
  },
  {
    name: 'option-patches',
    file: TRUSTED,
    check: '[ ! -f "$2" ] || patches_of "$2" |',
    planted: { 'is removed': 'true |' },
    attack: async (rig, change) => {
      const folder = await patches(rig);
      await chmod(folder, 0o777);
      const text = `node: { patches: { directory: ${folder} } }\n`;
      return await readsOption(rig, change, { config: await config(rig, text) });
    },
  },
  {
    name: 'private-folder',
    file: TRUSTED,
    check: '(umask 077 && mkdir -p "$D") && chmod 700 "$D"',
    planted: {
      'is removed': 'mkdir -p "$D"',
      'is only for new folders': '(umask 077 && mkdir -p "$D")',
    },
    attack: async (rig, change) => {
      await mkdir(rig.at('var/lib/refit'), { recursive: true, mode: 0o755 });
      await put(rig, GOOD);
      await rig.onHost(change(probe(PATHS)));
      return (await modeOf(rig.at('var/lib/refit'))) !== 0o700;
    },
  },
  {
    name: 'private-owner',
    file: TRUSTED,
    check: 'problem=$(untrusted "$D")',
    planted: { 'is removed': "problem=''" },
    needsRoot: true,
    attack: async (rig, change) => {
      await mkdir(rig.at('var/lib/refit'), { recursive: true });
      await chown(rig.at('var/lib/refit'), NOBODY, NOBODY);
      await put(rig, rig.evil);
      // The file is right, but its copy would lie in a folder of the attacker.
      return await owns(rig, change, probe(both(hashOf(rig.evil))));
    },
  },
  {
    name: 'options-of-prepare',
    file: 'prepare.sh',
    check: 'refuse_untrusted\nrefuse_copies',
    planted: { 'is removed': ':' },
    attack: async (rig, change) => {
      const file = await config(rig);
      await chmod(file, 0o666);
      return await readsOption(rig, change, { config: file });
    },
  },
  {
    name: 'options-of-kubeadm',
    file: 'kubeadm.sh',
    check: 'refuse_untrusted\nif [ "$ROLE" = controlPlane ]; then',
    planted: { 'is removed': 'if [ "$ROLE" = controlPlane ]; then' },
    attack: async (rig, change) => {
      const file = await config(rig);
      await chmod(file, 0o666);
      const body = kubeadmBody('node', 'worker', { config: file });
      await put(
        rig,
        `#!/bin/sh\n[ "$1" != upgrade ] || touch ${rig.at('owned')}\n`,
        'var/lib/refit/staged',
      );
      return await owns(rig, change, stepScript({ ...ROLLOUT, step: 'kubeadm' }, body));
    },
  },
  {
    name: 'process-owner',
    file: 'parts/in-use.sh',
    check: '[ "$owner" = 0 ] || [ "$owner" = "$(id -u)" ] || exit 1',
    planted: { 'is removed': ':' },
    needsRoot: true,
    attack: async (rig, change) => {
      const script = await runningKubelet(rig, 0o755);
      await chown(rig.at('opt/kubelet'), NOBODY, NOBODY);
      return await owns(rig, change, script);
    },
  },
  {
    name: 'process-mode',
    file: 'parts/in-use.sh',
    check: '[ $((0$mode & 18)) = 0 ] || exit 1',
    planted: { 'is removed': ':', 'ignores the group': '[ $((0$mode & 2)) = 0 ] || exit 1' },
    attack: async (rig, change) => await owns(rig, change, await runningKubelet(rig, 0o775)),
  },
  {
    name: 'manifest-link',
    file: 'parts/static-pods.sh',
    check: 'if [ -L "$1" ] || [ ! -f "$1" ]; then',
    planted: { 'follows links': 'if [ ! -f "$1" ]; then' },
    attack: async (rig, change) => {
      await upgradedEtcd(rig);
      await rig.put('elsewhere', etcd(2));
      await rig.onHost('rm "$REFIT_ROOT/etc/kubernetes/manifests/etcd.yaml"');
      await symlink(rig.at('elsewhere'), rig.at(MANIFEST));
      await rig.onHost(change(RESTORE));
      return !(await lstat(rig.at(MANIFEST))).isSymbolicLink();
    },
  },
  {
    name: 'manifest-path',
    file: 'parts/static-pods.sh',
    check: 'untrusted "$1"\n  fi',
    planted: { 'is removed': ':\n  fi' },
    attack: async (rig, change) => {
      await upgradedEtcd(rig);
      await chmod(rig.at('etc/kubernetes/manifests'), 0o777);
      await rig.onHost(change(RESTORE));
      return (await readFile(rig.at(MANIFEST), 'utf8')) !== etcd(2);
    },
  },
  {
    name: 'staged-manifest',
    file: 'parts/static-pods.sh',
    check: 'sync "$staged" && is_hash "$1" "$2" "$staged"',
    planted: { 'is removed': 'sync "$staged"' },
    attack: async (rig, change) => {
      await upgradedEtcd(rig);
      // The attacker changes the copy right after it was made.
      const swap = 'case $* in "-p "*.refit) echo "# owned" >>"$3" ;; esac';
      await rig.program('cp', `/bin/cp "$@" || exit 1; ${swap}`);
      await rig.onHost(change(RESTORE));
      return (await readFile(rig.at(MANIFEST), 'utf8')).includes('owned');
    },
  },
  {
    name: 'recorded-backup',
    file: 'parts/backups.sh',
    check: '[ ! -e "$file" ] || ! is_recorded "$1" "$file" || printf',
    planted: { 'is removed': '[ ! -e "$file" ] || printf' },
    attack: async (rig, change) => {
      await interruptedRun(rig, 'owned');
      await rig.onHost(change(repairScript()));
      return (await readdir(rig.at('etc/kubernetes/manifests'))).includes('kube-scheduler.yaml');
    },
  },
  {
    name: 'snapshot-path',
    file: 'restore-etcd.sh',
    check: 'problem=$(untrusted "$R$SNAPSHOT")',
    planted: { 'is removed': "problem=''" },
    attack: async (rig, change) => {
      await mkdir(rig.at('srv'));
      await chmod(rig.at('srv'), 0o777);
      return await isAccepted(rig, change, snapshot());
    },
  },
  {
    name: 'whole-snapshot',
    file: 'restore-etcd.sh',
    check: 'is_whole "$R$SNAPSHOT" ||',
    planted: { 'only wants some file': '[ -s "$R$SNAPSHOT" ] ||' },
    attack: async (rig, change) => await isAccepted(rig, change, snapshot().subarray(1)),
  },
  {
    name: 'private-run',
    file: 'detached.sh',
    check: 'umask 077\nmkdir -p "$D"\nexec 2>&1',
    planted: { 'is removed': 'mkdir -p "$D"\nexec 2>&1' },
    attack: async (rig, change) => {
      await put(rig, GOOD);
      await rig.onHost(change(stage(PATHS)));
      return (await modeOf(rig.at('var/lib/refit'))) !== 0o700;
    },
  },
  {
    name: 'private-snapshot',
    file: 'take-snapshot.sh',
    check: 'umask 077\ngive_up()',
    planted: { 'is removed': 'give_up()' },
    attack: async (rig, change) => {
      await takeSnapshot(rig, change, snapshot());
      const folder = rig.at('var/lib/refit/snapshots');
      const [name = ''] = await readdir(folder);
      return ((await modeOf(`${folder}/${name}`)) & 0o077) !== 0;
    },
  },
  {
    name: 'diff-staged',
    file: 'diff.sh',
    check: 'if [ ! -x "$kubeadm" ] || [ -n "$(wrong kubeadm "$kubeadm" "$SHA256")" ]; then',
    planted: { 'is removed': 'if [ ! -x "$kubeadm" ]; then' },
    attack: async (rig, change) => {
      await put(rig, GOOD);
      await put(rig, rig.evil, 'var/lib/refit/staged');
      return await owns(rig, change, diff(both(hashOf(GOOD))));
    },
  },
  {
    name: 'diff-copy',
    file: 'diff.sh',
    check: '[ -e "$COPY" ] && [ -z "$(wrong kubeadm "$COPY" "$SHA256")" ] || exit 0',
    planted: { 'is removed': '[ -e "$COPY" ] || exit 0' },
    attack: async (rig, change) => {
      await put(rig, rig.evil);
      return await owns(rig, change, diff(both('ab'.repeat(32))));
    },
  },
  {
    name: 'other-manifests',
    file: 'parts/backups.sh',
    check: 'is_recorded "$other" "$file" || grep -qxF "version $(tag "$file")" "$RUN" || return 1',
    planted: { 'is removed': ':' },
    attack: async (rig, change) => {
      await interruptedRun(rig, 'scheduler');
      await rig.put('etc/kubernetes/manifests/kube-apiserver.yaml', 'changed by a person');
      await rig.onHost(change(repairScript()));
      return (await readdir(rig.at('etc/kubernetes/manifests'))).includes('kube-scheduler.yaml');
    },
  },
  {
    name: 'placed-copy',
    file: 'parts/static-pods.sh',
    check: 'is_hash placed "$1" "$PODS/$1.placed" &&',
    planted: { 'is removed': 'true &&' },
    attack: async (rig, change) => {
      await upgradedEtcd(rig);
      // Somebody changes the manifest right before it is copied.
      const swap = 'case $* in "-p "*.placed) echo "# changed" >>"$3" ;; esac';
      await rig.program('cp', `/bin/cp "$@" || exit 1; ${swap}`);
      await rig.onHost(change(RESTORE));
      return (await readFile(rig.at(MANIFEST), 'utf8')) !== etcd(2);
    },
  },
  {
    name: 'undone-manifest',
    file: 'parts/static-pods.sh',
    check: 'is_hash kept "$1" "$now" && [ -e "$PODS/$1.placed" ] || return 0',
    planted: { 'is removed': '[ -e "$PODS/$1.placed" ] || return 0' },
    attack: async (rig, change) => {
      await upgradedEtcd(rig);
      await rig.onHost('echo "state undoing" >>"$REFIT_ROOT/var/lib/refit/static-pods/journal"');
      await rig.put('var/lib/refit/static-pods/etcd.placed', etcd(2));
      await rig.put(MANIFEST, etcd(3));
      await rig.onHost(change(RESTORE));
      return (await readFile(rig.at(MANIFEST), 'utf8')) !== etcd(3);
    },
  },
  {
    name: 'option-path',
    file: TRUSTED,
    check: 'problem=$(untrusted "$2")',
    planted: { 'is removed': "problem=''" },
    attack: async (rig, change) => {
      const file = await config(rig);
      await chmod(rig.at('own'), 0o777);
      return await readsOption(rig, change, { config: file });
    },
  },
  {
    name: 'whole-copy',
    file: 'take-snapshot.sh',
    check: 'is_whole "$FILE.new" ||',
    planted: { 'only wants some file': '[ -s "$FILE.new" ] ||' },
    attack: async (rig, change) => {
      await takeSnapshot(rig, change, snapshot().subarray(1));
      return (await readdir(rig.at('var/lib/refit/snapshots'))).length > 0;
    },
  },
];
