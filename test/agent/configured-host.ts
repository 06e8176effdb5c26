/**
 * A kubeadm host in a scratch root, whose agent may change files, keys and the kubelet. The agent is real, and
 * everything else is a stand-in.
 */
import { randomUUID } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { vi } from 'vitest';
import { REFIT } from '../../sandbox/refit.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { nodes } from '../../src/kube/resources.ts';
import {
  CONFIGURATION_ANNOTATION,
  type ConfigurationItem,
  configurationReportOn,
} from '../../src/signal/node-configuration.ts';
import { type AgentProcess, startAgentProcess } from './agent-process.ts';

/** Another user if the tests run as root; otherwise the user of the agent, because no other user is possible. */
const USER = process.getuid?.() === 0 ? 65_534 : (process.getuid?.() ?? 0);
export const FLAGS = 'var/lib/kubelet/kubeadm-flags.env';
export const KEYS = 'home/alice/.ssh/authorized_keys';

export function keysOfAlice(content: string): ConfigurationItem {
  return { name: 'user:alice', content: Buffer.from(content).toString('base64'), mode: 0o600 };
}

export function argument(name: string, value: string): ConfigurationItem {
  return { name: `kubelet:${name}`, content: value, mode: 0 };
}

export function file(path: string, content: string, mode = 0o644): ConfigurationItem {
  return { name: path, content: Buffer.from(content).toString('base64'), mode };
}

/** Of systemctl. */
export const RESTART = 'echo "$*" | tee -a "$REFIT_ROOT/systemctl"';

export class ConfiguredHost implements AsyncDisposable {
  readonly root: string;
  readonly name: string;
  readonly #admin: KubeClient;
  readonly #kubeconfig: string;
  readonly #agents: AgentProcess[] = [];

  private constructor(root: string, admin: KubeClient, kubeconfig: string) {
    this.root = root;
    this.name = `n-${root.split('-').at(-1)?.toLowerCase()}`;
    this.#admin = admin;
    this.#kubeconfig = kubeconfig;
  }

  static async arrive({
    admin,
    kubeconfig,
  }: {
    readonly admin: KubeClient;
    readonly kubeconfig: string;
  }) {
    const host = new ConfiguredHost(
      await mkdtemp(join(tmpdir(), 'refit-configured-')),
      admin,
      kubeconfig,
    );
    await host.put(
      'etc/passwd',
      `root:x:0:0::/root:/bin/sh\nalice:x:${USER}:${USER}::/home/alice:/bin/sh\n`,
    );
    await host.put('etc/demo/old', 'old\n');
    await host.put(FLAGS, 'KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.1 --v=2"\n');
    await host.program('kubeadm', 'exit 0');
    await host.program(
      'kubelet',
      'case "$*" in *=bad*) echo "invalid argument" >&2; exit 1 ;; esac',
    );
    await host.program('systemctl', RESTART);
    await host.program(
      'journalctl',
      `echo 'E1122 run.go:72] "command failed" err="it is too large"'; echo more`,
    );
    await mkdir(host.at('home/alice'), { recursive: true });
    await chmod(host.root, 0o755);
    await chown(host.at('home/alice'), USER, USER);
    await admin.create(nodes, { metadata: { name: host.name } });
    return host;
  }

  at(path: string): string {
    return join(this.root, path);
  }

  async put(path: string, content: string, mode = 0o644): Promise<void> {
    await mkdir(dirname(this.at(path)), { recursive: true });
    await writeFile(this.at(path), content, { mode });
  }

  async program(name: string, script: string): Promise<void> {
    await this.put(`usr/bin/${name}`, `#!/bin/sh\n${script}\n`, 0o755);
  }

  async read(path: string): Promise<string | undefined> {
    return await readFile(this.at(path), 'utf8').catch(() => undefined);
  }

  async mode(path: string): Promise<number> {
    return (await stat(this.at(path))).mode & 0o7777;
  }

  start(...flags: string[]): AgentProcess {
    const state = [
      '--state-dir',
      this.at('state'),
      '--run-dir',
      this.at('run'),
      '--config',
      this.at('none'),
    ];
    const own = ['--procedure', 'kubeadm', '--name', this.name, '--kubeconfig', this.#kubeconfig];
    const environment = {
      REFIT_ROOT: this.root,
      PATH: `${this.at('usr/bin')}:${process.env['PATH']}`,
    };
    const args = [
      ...own,
      ...state,
      '--node-configuration',
      '/etc/demo,user:alice,kubelet',
      ...flags,
    ];
    const agent = startAgentProcess([process.execPath, REFIT], args, environment);
    this.#agents.push(agent);
    return agent;
  }

  /** Resolves with the uid of the request. */
  async ask(...items: ConfigurationItem[]): Promise<string> {
    const uid = randomUUID();
    const annotations = { [CONFIGURATION_ANNOTATION]: JSON.stringify({ uid, items }) };
    await this.#admin.patch(nodes, this.name, { metadata: { annotations } }, { type: 'merge' });
    return uid;
  }

  async answer(uid: string): Promise<{ readonly failure?: string | undefined }> {
    return await this.until(async () => {
      const report = configurationReportOn(await this.#admin.get(nodes, this.name), { uid });
      if (!report)
        throw new Error(
          `no report; the agent said:\n${this.#agents.at(-1)?.log.slice(-15).join('\n')}`,
        );
      return report;
    });
  }

  async restarts(): Promise<number> {
    return ((await this.read('systemctl')) ?? '')
      .split('\n')
      .filter((line) => line === 'restart kubelet').length;
  }

  /** Writes the Ready condition as a kubelet does, with times in whole seconds. */
  async becomeReady(status = 'True', at = Date.now()): Promise<void> {
    const lastHeartbeatTime = new Date(Math.floor(at / 1000) * 1000).toISOString();
    const conditions = [{ type: 'Ready', status, lastHeartbeatTime }];
    await this.#admin.patch(
      nodes,
      this.name,
      { status: { conditions } },
      { type: 'merge', subresource: 'status' },
    );
  }

  async until<T>(condition: () => Promise<T>): Promise<T> {
    return await vi.waitFor(condition, { timeout: 150_000, interval: 20 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#agents.map(async (agent) => await agent.stop('SIGKILL')));
    await rm(this.root, { recursive: true, force: true });
  }
}
