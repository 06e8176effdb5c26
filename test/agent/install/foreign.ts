/**
 * Runs inside a jail. Records what install and uninstall print and do if files of somebody else, or faults of the disk,
 * prevent their work.
 */
import { execFileSync } from 'node:child_process';
import {
  copyFile,
  mkdir,
  readdir,
  readFile,
  readlink,
  rm,
  rmdir,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { takeLock } from '../../../src/agent/state/lock.ts';

const BINARY = '/usr/local/bin/refit';
const CREDENTIALS = '/etc/refit/agent.kubeconfig';
const FLAGS = '/etc/refit/agent.yaml';
const TEXT = '#!/bin/sh\n# Somebody else wrote this.\n';

export interface SeenForeign {
  /** The output of install and uninstall while all files belong to somebody else. */
  readonly refused: string;
  readonly kept: string;
  /** The output of install while the service is masked. */
  readonly masked: string;
  /** The output of uninstall after the file of the service is gone. */
  readonly left: string;
  /** The output of install and uninstall while the file of the service is a directory. */
  readonly directory: string;
  /**
   * The output of install and uninstall while an agent that no service runs uses the state directory; then the output
   * of uninstall while files of the host are being changed.
   */
  readonly used: string;
  readonly changing: string;
  /** The files that were changed although they belong to somebody else. */
  readonly changed: readonly string[];
  /** The output of install while the disk of the binary is full, and what exists after that. */
  readonly full: string;
  readonly afterFull: readonly string[];
  /**
   * The output of install and uninstall for a kubeadm host, with an option in agent.yaml that only a kubeadm host has.
   */
  readonly kubeadm: string;
  /** The output of uninstall while nobody can remove the file of the service, and the output after that. */
  readonly stuck: string;
  readonly freed: string;
}

/** `service`: the file of the service; `state`: the state directory. Leaves nothing behind. */
export async function tryForeign(
  refit: (...args: string[]) => string,
  service: string,
  state: string,
): Promise<SeenForeign> {
  const files = [service, BINARY, CREDENTIALS];
  const changed: string[] = [];
  const check = async (...paths: string[]): Promise<void> => {
    for (const path of paths)
      if ((await readFile(path, 'utf8').catch(String)) !== TEXT) changed.push(path);
  };
  await mkdir(dirname(CREDENTIALS), { recursive: true });
  for (const path of files) await writeFile(path, TEXT, { mode: 0o600 });
  const refused = refit('install', 'agent', '--credentials', '/var/lib/k0s/kubelet.conf');
  const kept = refit('uninstall', 'agent');
  await check(...files);
  await rm(service);
  await symlink('/dev/null', service);
  const masked = refit('install', 'agent');
  if ((await readlink(service).catch(String)) !== '/dev/null')
    changed.push(`the mask of ${service}`);
  await rm(service);
  await mkdir(service);
  const directory = refit('install', 'agent') + refit('uninstall', 'agent');
  await rmdir(service);
  await mkdir(state, { recursive: true, mode: 0o700 });
  await takeLock(join(state, 'agent.lock'), process.pid);
  const used = (refit('install', 'agent') + refit('uninstall', 'agent')).replaceAll(
    String(process.pid),
    'PID',
  );
  await rm(join(state, 'agent.lock.1'));
  await writeFile(join(state, 'journal-configuration.json'), '[]', { mode: 0o600 });
  const changing = refit('uninstall', 'agent');
  await rm(join(state, 'journal-configuration.json'));
  const left = refit('uninstall', 'agent');
  await check(BINARY, CREDENTIALS);
  for (const path of [BINARY, CREDENTIALS]) await rm(path, { force: true });

  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=755', 'none', dirname(BINARY)]);
  const full = refit('install', 'agent');
  const afterFull = await readdir(dirname(BINARY));
  execFileSync('umount', [dirname(BINARY)]);
  const said = { refused, kept, masked, directory, used, changing, left, changed, full, afterFull };
  return { ...said, ...(await onKubeadm(refit, service)) };
}

async function onKubeadm(
  refit: (...args: string[]) => string,
  service: string,
): Promise<Pick<SeenForeign, 'kubeadm' | 'stuck' | 'freed'>> {
  const flags = await readFile(FLAGS, 'utf8');
  await writeFile(FLAGS, `${flags}kubeadm-config: /etc/refit/upgrade.yaml\n`);
  await mkdir('/etc/kubernetes', { recursive: true });
  await copyFile('/var/lib/k0s/kubelet.conf', '/etc/kubernetes/kubelet.conf');
  const install = ['install', 'agent', '--procedure', 'kubeadm'];
  const kubeadm = refit(...install) + refit('uninstall', 'agent');
  await writeFile(FLAGS, flags);
  refit(...install);
  execFileSync('mount', ['--bind', service, service]);
  const stuck = refit('uninstall', 'agent');
  execFileSync('umount', [service]);
  return { kubeadm, stuck, freed: refit('uninstall', 'agent') };
}
