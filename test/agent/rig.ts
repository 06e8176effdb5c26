/**
 * One node as other processes observe it: a host with a service, an agent process, the object of the node, and a record
 * of what they did.
 */
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import {
  type DownloadServer,
  type Fault,
  startDownloadServer,
} from '../../sandbox/hosts/download-server.ts';
import {
  agentArguments,
  type Host,
  type HostOptions,
  startHost,
} from '../../sandbox/hosts/host.ts';
import { type Broken, buildStandIn } from '../../sandbox/hosts/stand-in.ts';
import { REFIT } from '../../sandbox/refit.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { apiVersionOf, type KubeObject, type Resource } from '../../src/kube/resources.ts';
import { createInformer } from '../../src/kube/watch/informer.ts';
import {
  type AgentPolicy,
  type AgentReport,
  decodeReport,
  decodeSignal,
  encodeAgentPolicy,
  encodeSignal,
  type SignalData,
} from '../../src/signal/annotations.ts';
import { AGENT_ANNOTATION, ROLLOUT_ANNOTATION, SIGNAL_OBJECTS } from '../../src/signal/names.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { type AgentProcess, startAgentProcess } from './agent-process.ts';
import { electSilentLeader } from './leader-lease.ts';

export const OLD = 'v1.36.3+k0s.0';
export const NEW = 'v1.36.3+k0s.2';
export const NEXT = 'v1.36.4+k0s.0';

const TERMINAL = ['Completed', 'FailedDownload', 'Failed'];

export interface RigOptions
  extends Partial<Pick<HostOptions, 'restartDelayMs' | 'apiServer' | 'ownAgent'>> {
  /** The name of the node. It must be unique in its cluster. */
  readonly name: string;
  readonly role?: 'controller' | 'worker';
  /** Client with every right, for what people and the engine do. */
  readonly admin: KubeClient;
  /** Writes the annotations of a signal. If undefined, the administrator writes them. */
  readonly writeSignal?: (annotations: Record<string, string>) => Promise<unknown>;
  /** Path of the agent's own kubeconfig. */
  readonly kubeconfig: string;
  readonly faults?: readonly Fault[];
  readonly breakFor?: readonly string[];
  /** The fault of the build of NEW. */
  readonly broken?: Broken;
  /** Size of the build of NEW. */
  readonly bytes?: number;
  readonly flags?: readonly string[];
  /** More arguments of the service. */
  readonly serviceFlags?: readonly string[];
  /** The command that starts Refit. If undefined, the command that all tests use. */
  readonly refit?: readonly [string, ...string[]];
  /** An empty directory for the host, such as a mounted disk. If undefined, a temporary directory is used. */
  readonly hostDirectory?: string;
  /** Variables that are added to the environment of the agent. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The policy for the agent that its leader sends with each signal. */
  readonly policy?: AgentPolicy;
}

/** A label and an annotation that the agent must not change. */
const THEIRS = { labels: { pool: 'blue' }, annotations: { 'example.com/theirs': 'kept' } };

export class Rig implements AsyncDisposable {
  readonly host: Host;
  readonly server: DownloadServer;
  /** The statuses of the newest signal, in the order in which a watch observed them. */
  statuses: string[] = [];
  /** Called once when a watch observes a status for the first time. */
  onStatus: (status: string) => void = () => undefined;
  /**
   * The number of changes, since the newest signal, of the parts that agents write. Taints and other annotations do not
   * count, because controllers of the cluster write them.
   */
  changes = 0;
  /** The newest signal's `created`. */
  created = '';
  agent: AgentProcess | undefined;
  readonly #options: RigOptions;
  readonly #resource: Resource;
  readonly #began = Date.now();
  #sent = 0;

  #things: AsyncDisposableStack;

  private constructor(
    options: RigOptions,
    host: Host,
    server: DownloadServer,
    things: AsyncDisposableStack,
  ) {
    this.#options = options;
    this.#things = things;
    this.host = host;
    this.server = server;
    this.#resource = SIGNAL_OBJECTS[options.role === 'controller' ? 'controlnode' : 'node'];
  }

  static async start(options: RigOptions): Promise<Rig> {
    const {
      name,
      role = 'worker',
      broken,
      bytes,
      faults = [],
      breakFor = [],
      apiServer,
      ownAgent = false,
      restartDelayMs = 20,
      serviceFlags = [],
    } = options;
    await using things = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), 'refit-rig-'));
    things.defer(async () => await rm(directory, { recursive: true }));
    const files = {
      '/old': join(directory, 'old'),
      '/new': join(directory, 'new'),
      '/next': join(directory, 'next'),
    };
    await buildStandIn({ version: OLD, path: files['/old'] });
    await buildStandIn({
      version: NEW,
      path: files['/new'],
      ...(broken && { broken }),
      ...(bytes && { bytes }),
    });
    await buildStandIn({ version: NEXT, path: files['/next'] });
    const server = await startDownloadServer({ files, faults, breakFor });
    things.defer(async () => await server.stop());
    const place = { name, role, directory: options.hostDirectory ?? join(directory, 'host') };
    const service = {
      flags: serviceFlags,
      ownAgent,
      restartDelayMs,
      ...(apiServer && { apiServer }),
    };
    const host = await startHost({ ...place, ...service, version: OLD });
    things.defer(async () => await host.stop());
    things.use(await electSilentLeader(options.admin));
    const rig = new Rig(options, host, server, things);
    await rig.#watchObject();
    rig.#things = things.move();
    return rig;
  }

  startAgent(...more: string[]): AgentProcess {
    const {
      kubeconfig,
      flags = [],
      environment,
      refit = [process.execPath, REFIT],
    } = this.#options;
    const agent = startAgentProcess(
      refit,
      [...agentArguments(this.host, kubeconfig), ...flags, ...more],
      environment,
    );
    this.#things.defer(async () => void (await agent.stop('SIGKILL')));
    this.agent = agent;
    return agent;
  }

  /** Writes the status as a leader does. */
  async answer(status: 'ApplyingUpdate' | 'Completed'): Promise<void> {
    const signal = decodeSignal((await this.object()).metadata.annotations);
    if (signal === undefined) throw new Error('there is no signal');
    const timestamp = rfc3339(Date.now());
    await this.annotate(encodeSignal({ ...signal, status: { status, timestamp } }));
  }

  /** Sends a signal. Only unusual signals need `created`, because the default is a new time. */
  async send(
    file: '/old' | '/new' | '/next' | '/none',
    version: string,
    more: object = {},
    created = rfc3339(this.#began + 1_000 * ++this.#sent),
  ): Promise<void> {
    this.created = created;
    const sha256 = this.server.sha256(file) || 'ab'.repeat(32);
    const command = {
      id: 0,
      kind: 'k0supdate',
      url: this.server.url + file,
      version,
      sha256,
      ...more,
    } as const;
    const { policy, writeSignal } = this.#options;
    const ours = policy && {
      [ROLLOUT_ANNOTATION]: `uid/${this.created}`,
      ...encodeAgentPolicy(policy),
    };
    const annotations = {
      ...encodeSignal({ planId: 'plan', created: this.created, command }),
      ...ours,
    };
    this.statuses = [];
    await (writeSignal ? writeSignal(annotations) : this.annotate(annotations));
  }

  async annotate(annotations: Record<string, string>): Promise<void> {
    const { admin, name } = this.#options;
    await admin.patch(this.#resource, name, { metadata: { annotations } }, { type: 'merge' });
  }

  async object(): Promise<KubeObject> {
    return await this.#options.admin.get(this.#resource, this.#options.name);
  }

  /**
   * Waits until the agent has announced itself. Otherwise the write of the announcement may happen between a signal and
   * its report.
   */
  async announced(): Promise<void> {
    await this.until(async () =>
      expect((await this.object()).metadata.annotations).toHaveProperty([AGENT_ANNOTATION]),
    );
  }

  async report(): Promise<AgentReport | undefined> {
    return decodeReport((await this.object()).metadata.annotations, this.created);
  }

  /** Returns the text of the journal of the agent; `"idle"` if there is no journal yet. */
  async journal(): Promise<string> {
    return await readFile(join(this.host.stateDirectory, 'journal.json'), 'utf8').catch(
      () => '"idle"',
    );
  }

  /** Waits until the newest signal has ended and the agent has cleaned up. */
  async end(): Promise<void> {
    await this.until(async () => {
      expect(TERMINAL).toContain(this.statuses.at(-1));
      expect(await this.journal()).toContain('"idle"');
    });
  }

  /**
   * Waits until a condition is true. If this takes too long, throws an error that contains the last messages of the
   * agent.
   */
  async until(condition: () => void | Promise<void>): Promise<void> {
    try {
      await vi.waitFor(condition, { timeout: 150_000, interval: 25 });
    } catch (error) {
      throw new Error(
        `statuses ${this.statuses.join(' ')}; agent said:\n${this.agent?.log.slice(-15).join('\n')}`,
        {
          cause: error,
        },
      );
    }
  }

  /** Lower-case sha256 of the installed binary. */
  async installed(suffix = ''): Promise<string> {
    return createHash('sha256')
      .update(await readFile(this.host.binary + suffix))
      .digest('hex');
  }

  /** Returns the names of all files in the directory of the binary, except the binary and the previous binary. */
  async leftovers(): Promise<string[]> {
    const names = await readdir(join(this.host.directory, 'bin'));
    return names.filter((name) => name !== 'k0s' && name !== 'k0s.previous');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#things.disposeAsync();
  }

  async #watchObject(): Promise<void> {
    const { admin, name } = this.#options;
    const { kind } = this.#resource;
    const object = {
      apiVersion: apiVersionOf(this.#resource),
      kind,
      metadata: { name, ...structuredClone(THEIRS) },
    };
    await admin.create(this.#resource, object);
    // The next test would ask every registered controller whether it is ready, so this object must be deleted.
    this.#things.defer(async () => await admin.delete(this.#resource, name));
    const informer = createInformer(admin, this.#resource, {
      fieldSelector: `metadata.name=${name}`,
    });
    const see = (object: KubeObject, previous: KubeObject): void => {
      const changed = JSON.stringify(agentPartOf(object)) !== JSON.stringify(agentPartOf(previous));
      this.#see(decodeSignal(object.metadata.annotations), changed);
    };
    informer.addHandler({ updated: see });
    const watching = new AbortController();
    this.#things.defer(() => watching.abort());
    void informer.run(watching.signal);
    await informer.whenSynced();
  }

  #see(signal: SignalData | undefined, changed: boolean): void {
    if (signal?.created !== this.created) return;
    if (signal.status === undefined) this.changes = 0;
    else if (changed) this.changes++;
    const status = signal.status?.status;
    if (status === undefined || this.statuses.includes(status)) return;
    this.statuses.push(status);
    this.onStatus(status);
  }
}

type SignalObject = KubeObject & {
  spec?: { unschedulable?: boolean };
  status?: { k0sVersion?: string };
};

function agentPartOf({ metadata, spec, status }: SignalObject): unknown {
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([name]) =>
    /k0sproject\.io|refit/.test(name),
  );
  return [annotations, spec?.unschedulable, status?.k0sVersion];
}
