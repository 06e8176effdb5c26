/** Hosts and scripts for the attacks on the guards of the shell scripts for kubeadm hosts. */
import { createHash } from 'node:crypto';
import { chmod, mkdir, stat, symlink } from 'node:fs/promises';
import { restoreFactsScript } from '../../src/dialects/kubeadm/command/restore-etcd.ts';
import { snapshotScript } from '../../src/dialects/kubeadm/host/etcd.ts';
import { wholeScript } from '../../src/dialects/kubeadm/host/filled-script.ts';
import type { KubeadmOptions, Upgrade } from '../../src/dialects/kubeadm/host/host.ts';
import {
  diffScript,
  factsScript,
  prepareScript,
  probeScript,
  stageBody,
  stepScript,
} from '../../src/dialects/kubeadm/host/scripts.ts';
import { attackedManifest, type KubeadmRig, VERSION } from './kubeadm-rig.ts';

/** Changes a script on its way to the host. */
export type Change = (script: string) => string;

export interface Guard {
  readonly name: string;
  /** The file below src/dialects/kubeadm/host/scripts. */
  readonly file: string;
  /** The text of the check, as it follows the comment with the name of the guard. */
  readonly check: string;
  /** What replaces the check, by a description. */
  readonly planted: Readonly<Record<string, string>>;
  /** True if the attack needs files of another user. */
  readonly needsRoot?: boolean;
  /** Resolves with true if the attack succeeded. */
  readonly attack: (rig: KubeadmRig, change: Change) => Promise<boolean>;
}

export const hashOf = (text: string | Buffer): string =>
  createHash('sha256').update(text).digest('hex');
export const ROLLOUT = { rollout: 'r', version: VERSION };
export const GOOD = `#!/bin/sh\ncase $1 in --version) echo "Kubernetes ${VERSION}" ;; *) echo ${VERSION} ;; esac\n`;
export const PATHS = { kubeadm: { path: '/srv/kubeadm' }, kubelet: { path: '/srv/kubelet' } };
export const both = (sha256: string) => ({
  kubeadm: { ...PATHS.kubeadm, sha256 },
  kubelet: { ...PATHS.kubelet, sha256 },
});

export async function put(rig: KubeadmRig, text: string, folder = 'srv'): Promise<void> {
  for (const name of ['kubeadm', 'kubelet']) await rig.put(`${folder}/${name}`, text, 0o755);
}

export const probe = (binaries: Upgrade['binaries']): string => {
  const { manifest, host } = attackedManifest(binaries);
  return probeScript(manifest, host, Date.now());
};
export const stage = (binaries: Upgrade['binaries']): string =>
  stepScript({ ...ROLLOUT, step: 'stage' }, stageBody(attackedManifest(binaries).manifest));
export const prepare = (binaries: Upgrade['binaries'], kubeadm: KubeadmOptions = {}): string => {
  const { manifest, host } = attackedManifest(binaries, kubeadm);
  return prepareScript(manifest, host, false);
};

export const diff = (binaries: Upgrade['binaries']): string => {
  const { manifest, host } = attackedManifest(binaries);
  return diffScript(manifest, host);
};

/** Runs `script`. Resolves with true if root ran the program of the attacker. */
export const owns = async (rig: KubeadmRig, change: Change, script: string): Promise<boolean> => {
  await rig.onHost(change(script));
  return rig.isOwned;
};

/** Runs the checks of kubeadm with an option that others may change. kubeadm reads the option as root. */
export async function readsOption(
  rig: KubeadmRig,
  change: Change,
  kubeadm: KubeadmOptions,
  scriptOf = prepare,
): Promise<boolean> {
  await put(rig, GOOD.replace('*)', `upgrade) touch ${rig.at('owned')} ;; *)`));
  return await owns(rig, change, scriptOf(PATHS, kubeadm));
}

export async function patches(rig: KubeadmRig): Promise<string> {
  await rig.put('patches/etcd.json', '[]');
  return rig.at('patches');
}

export async function config(
  rig: KubeadmRig,
  text = 'kind: UpgradeConfiguration\n',
): Promise<string> {
  await rig.put('own/upgrade.yaml', text);
  return rig.at('own/upgrade.yaml');
}

/** Puts a kubelet that runs on the host. Its program belongs to the attacker. */
export async function runningKubelet(rig: KubeadmRig, mode: number): Promise<string> {
  await rig.program('systemctl', 'case $* in *MainPID*kubelet) echo 1234 ;; esac');
  await rig.put('opt/kubelet', rig.evil);
  await chmod(rig.at('opt/kubelet'), mode);
  await rig.put('proc/1234/cmdline', '/opt/kubelet\0');
  await symlink(rig.at('opt/kubelet'), rig.at('proc/1234/exe'));
  return factsScript({ name: 'w1', role: 'worker' });
}

export const etcd = (patch: number): string =>
  `spec:\n  containers:\n  - name: etcd\n    image: r/etcd:3.6.${patch}-0\n`;
export const MANIFEST = 'etc/kubernetes/manifests/etcd.yaml';
export const RESTORE = `${wholeScript('parts/static-pods.sh')}\nstatic_pods_back r\n`;

/** Puts the state after an upgrade of etcd, whose manifest can go back. */
export async function upgradedEtcd(rig: KubeadmRig): Promise<void> {
  const journal = ['rollout r', `kept etcd ${hashOf(etcd(1))}`, `placed etcd ${hashOf(etcd(2))}`];
  await rig.put('var/lib/refit/static-pods/journal', `${journal.join('\n')}\n`);
  await rig.put('var/lib/refit/static-pods/etcd.yaml', etcd(1));
  await rig.put('var/lib/refit/kubeadm.journal', '');
  await rig.put(MANIFEST, etcd(2));
}

/** The last 32 bytes of a snapshot are the hash of the others. */
export function snapshot(): Buffer {
  const body = Buffer.alloc(1000, 'a');
  return Buffer.concat([body, createHash('sha256').update(body).digest()]);
}

export async function isAccepted(rig: KubeadmRig, change: Change, bytes: Buffer): Promise<boolean> {
  await rig.put(MANIFEST, '    - --data-dir=/var/lib/etcd\n    - --name=cp1\n');
  for (const name of ['etcdutl', 'curl']) await rig.program(name, 'exit 0');
  await mkdir(rig.at('srv'), { recursive: true });
  await rig.put('srv/blob', bytes.toString('base64'));
  await rig.onHost('base64 -d <"$REFIT_ROOT/srv/blob" >"$REFIT_ROOT/srv/snap.db"');
  const said = await rig.onHost(
    change(restoreFactsScript({ snapshot: '/srv/snap.db', stamp: 'one' })),
  );
  return /^[0-9a-f]{64} cp1=/m.test(said);
}

/** Takes a snapshot of an etcd that sends these bytes. */
export async function takeSnapshot(rig: KubeadmRig, change: Change, bytes: Buffer): Promise<void> {
  const urls = '    - --listen-client-urls=https://127.0.0.1:2379\n';
  await rig.put(MANIFEST, `${urls}    - --data-dir=/var/lib/etcd\n`);
  await rig.program('curl', `echo '{"result":{"blob":"${bytes.toString('base64')}"}}'`);
  await rig.program('etcdutl', 'exit 0');
  await rig.onHost(change(snapshotScript(VERSION, 1)));
}

/** Puts the state of a run that was killed after it moved the manifest of the scheduler to this backup. */
export async function interruptedRun(rig: KubeadmRig, backup: string): Promise<void> {
  const tmp = 'etc/kubernetes/tmp';
  await rig.put('etc/kubernetes/controller-manager.conf', '');
  await rig.put(MANIFEST, etcd(1));
  await rig.put('var/lib/refit/kubeadm.journal', 'r kubeadm begun\n');
  const lost = `manifest kube-scheduler.yaml ${hashOf('scheduler')}  -`;
  await rig.put('var/lib/refit/kubeadm.run', `r\nversion ${VERSION}\n${lost}\n`);
  await rig.put(`${tmp}/kubeadm-backup-manifests-2/kube-scheduler.yaml`, backup);
  await rig.put(`${tmp}/kubeadm-upgraded-manifests1/kube-scheduler.yaml`, 'new');
  await rig.onHost(`touch -d '1 hour ago' "$REFIT_ROOT/var/lib/refit/kubeadm.run"`);
}

export const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;
