/**
 * A directory that replaces a kubeadm host. An attacker prepares files in this directory. Every program of the attacker
 * that runs as root creates a file there.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { KubeadmOptions, Upgrade } from '../../src/dialects/kubeadm/host/host.ts';
import { parseManifest } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { run } from '../../tools/controlplane/run.ts';

export const VERSION = 'v1.36.3';

export class KubeadmRig implements AsyncDisposable {
  readonly root: string;

  private constructor(root: string) {
    this.root = root;
  }

  static async create(): Promise<KubeadmRig> {
    const rig = new KubeadmRig(await mkdtemp(join(tmpdir(), 'refit-attacked-')));
    await rig.put('run/empty', '');
    for (const name of ['systemctl', 'containerd']) await rig.program(name, 'exit 0');
    // On this host, no file belongs to a package, and no other kubeadm runs.
    for (const name of ['dpkg-query', 'rpm', 'pgrep']) await rig.program(name, 'exit 1');
    for (const name of ['kubeadm', 'kubelet']) await rig.program(name, 'exit 0');
    return rig;
  }

  at(path: string): string {
    return join(this.root, path);
  }

  async put(path: string, text: string, mode = 0o644): Promise<void> {
    await mkdir(dirname(this.at(path)), { recursive: true });
    await writeFile(this.at(path), text, { mode });
  }

  async program(name: string, body: string): Promise<void> {
    await this.put(`usr/bin/${name}`, `#!/bin/sh\n${body}\n`, 0o755);
  }

  /** What the attacker wants root to run. */
  get evil(): string {
    return `#!/bin/sh\ntouch ${this.at('owned')}\necho ${VERSION}\n`;
  }

  get isOwned(): boolean {
    return existsSync(this.at('owned'));
  }

  async onHost(script: string): Promise<string> {
    const path = `${this.at('usr/bin')}:${process.env['PATH']}`;
    const environment = { REFIT_ROOT: this.root, PATH: path };
    const { stdout, stderr } = await run('sh', ['-s'], { environment, input: script });
    return `${stdout}${stderr}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true });
  }
}

/** A manifest with one host, whose binaries are files or downloads. */
export function attackedManifest(binaries: Upgrade['binaries'], kubeadm: KubeadmOptions = {}) {
  const hosts = [
    { name: 'cp1', role: 'worker' },
    { name: 'cp2', role: 'controlPlane' },
  ];
  const text = JSON.stringify({ version: VERSION, hosts, binaries, kubeadm });
  const manifest = parseManifest(text, 'm.yaml');
  const [host] = manifest.hosts;
  if (!host) throw new Error('the manifest has no host');
  return { manifest, host };
}
