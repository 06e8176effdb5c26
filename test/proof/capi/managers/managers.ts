/** Runs Cluster API's managers on loopback: their certificates, command lines and addresses. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../../../src/util/clock.ts';
import {
  createAuthority,
  issueServer,
  type KeyPair,
  validFrom,
} from '../../../../tools/controlplane/certs.ts';
import { freePort } from '../../../../tools/controlplane/ports.ts';
import { probeAs } from '../../../../tools/controlplane/probe.ts';
import { type Process, startProcess, stopAll } from '../../../../tools/controlplane/process.ts';
import { applyDefinitions, applyWebhooks } from './definitions.ts';
import type { ManagerName, Program } from './programs.ts';

export interface ManagersOptions {
  readonly programs: readonly Program[];
  /** The directory that has the folders `logs` and `pids`. */
  readonly directory: string;
  /** An administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** The certificate that the managers show to extensions, and its key. */
  readonly client: KeyPair;
  readonly abort: AbortSignal;
}

/** The feature gates of each manager, and whether it calls extensions. */
const OWN: Readonly<Record<ManagerName, { readonly gates: string; readonly calls: boolean }>> = {
  core: { gates: 'ClusterTopology=true,RuntimeSDK=true,InPlaceUpdates=true', calls: true },
  bootstrap: { gates: 'ClusterTopology=true', calls: false },
  'control-plane': {
    gates: 'ClusterTopology=true,RuntimeSDK=true,InPlaceUpdates=true',
    calls: true,
  },
  infrastructure: { gates: 'ClusterTopology=true', calls: false },
};
const SUBJECT = { commonName: 'cluster-api-webhooks' };

export class Managers {
  readonly #options: ManagersOptions;
  readonly #running = new Map<ManagerName, Process>();
  readonly #ports = new Map<
    ManagerName,
    Readonly<Record<'webhooks' | 'health' | 'diagnostics', number>>
  >();
  #certificates = '';

  constructor(options: ManagersOptions) {
    this.#options = options;
  }

  /** Resolves when all managers are ready and the API server calls their webhooks. */
  async open(): Promise<void> {
    const { directory, programs, kubeconfig } = this.#options;
    const validity = validFrom(systemClock.now());
    const authority = createAuthority(SUBJECT, validity);
    const names = { dns: ['localhost'], addresses: ['127.0.0.1'] };
    const { certificate, key } = issueServer(
      { subject: SUBJECT, key: authority.key },
      names,
      validity,
    );
    this.#certificates = await writePair(join(directory, 'webhooks'), { certificate, key });
    await writePair(join(directory, 'managers'), this.#options.client);
    for (const program of programs) await applyDefinitions(kubeconfig, program);
    await Promise.all(programs.map(async ({ name }) => await this.start(name)));
    for (const program of programs) {
      const url = `https://127.0.0.1:${this.#ports.get(program.name)?.webhooks}`;
      await applyWebhooks(kubeconfig, program, url, authority.certificate);
    }
  }

  /** Starts a manager, and resolves when it is ready. It gets the same addresses as before. */
  async start(name: ManagerName): Promise<void> {
    const { directory, programs, abort } = this.#options;
    const ports = this.#ports.get(name) ?? {
      webhooks: await freePort(),
      health: await freePort(),
      diagnostics: await freePort(),
    };
    this.#ports.set(name, ports);
    const probe = probeAs({ ca: '', cert: '', key: '' });
    const running = await startProcess({
      name: `cluster-api-${name}`,
      command: programs.find((program) => program.name === name)?.path ?? '',
      args: this.#arguments(name, ports),
      environment: { POD_NAMESPACE: 'capi-system', POD_IP: '127.0.0.1' },
      directory,
      ready: async () => await probe(`http://127.0.0.1:${ports.health}/readyz`),
      clock: systemClock,
      abort,
    });
    this.#running.set(name, running);
  }

  #arguments(
    name: ManagerName,
    { webhooks, health, diagnostics }: Record<'webhooks' | 'health' | 'diagnostics', number>,
  ) {
    const { directory, kubeconfig } = this.#options;
    const { gates, calls } = OWN[name];
    const pair = (file: string): string => join(directory, 'managers', file);
    return [
      `--kubeconfig=${kubeconfig}`,
      `--webhook-port=${webhooks}`,
      `--webhook-cert-dir=${this.#certificates}`,
      `--health-addr=127.0.0.1:${health}`,
      `--diagnostics-address=127.0.0.1:${diagnostics}`,
      '--insecure-diagnostics',
      '--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields',
      `--feature-gates=${gates}`,
      ...(calls
        ? [
            `--runtime-extension-client-cert-file=${pair('tls.crt')}`,
            `--runtime-extension-client-key-file=${pair('tls.key')}`,
          ]
        : []),
    ];
  }

  /** Kills a manager with SIGKILL, as in a crash. */
  async kill(name: ManagerName): Promise<void> {
    const running = this.#running.get(name);
    if (running === undefined) return;
    process.kill(running.pid, 'SIGKILL');
    await running.stop();
  }

  /**
   * Returns how many calls of `hook` this manager has made. `failed` counts the calls that did not end with an answer
   * of `Success`.
   */
  async calls(
    name: ManagerName,
    hook: string,
  ): Promise<{ readonly all: number; readonly failed: number }> {
    const response = await fetch(`http://127.0.0.1:${this.#ports.get(name)?.diagnostics}/metrics`);
    const lines = (await response.text())
      .split('\n')
      .filter(
        (line) =>
          line.startsWith('capi_runtime_sdk_requests_total{') && line.includes(`hook="${hook}"`),
      );
    const sum = (some: readonly string[]): number =>
      some.reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' '))), 0);
    return {
      all: sum(lines),
      failed: sum(lines.filter((line) => !line.includes('status="Success"'))),
    };
  }

  async stop(): Promise<void> {
    await stopAll([...this.#running.values()]);
  }
}

async function writePair(folder: string, { certificate, key }: KeyPair): Promise<string> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'tls.crt'), certificate);
  await writeFile(join(folder, 'tls.key'), key, { mode: 0o600 });
  return folder;
}
