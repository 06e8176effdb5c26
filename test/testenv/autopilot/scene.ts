/** A stand-in cluster for the scenarios of the original's integration tests, and observers of this cluster. */
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { payloadPath } from '../../../sandbox/cluster/served-versions.ts';
import type { DownloadServer } from '../../../sandbox/hosts/download-server.ts';
import type { Host } from '../../../sandbox/hosts/host.ts';
import {
  type Plan,
  type PlanCommand,
  plans,
  type TargetStatus,
} from '../../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { isNotFound } from '../../../src/kube/status-error.ts';
import {
  COMBINATIONS,
  type Combination,
  type Mixed,
  type MixedOptions,
  startMixed,
} from '../../support/doubles/mixed.ts';
import { Motion } from '../../support/expectations/motion.ts';
import { type Sighting, watchSignals } from '../../support/expectations/signal-watch.ts';
import { WHOLE } from '../../support/whole.ts';
import { type AuditEvent, auditedSince, endOfAudit } from '../audit.ts';
import { DELETED, watchStates } from './plan-states.ts';

export const FROM = 'v1.36.3+k0s.0';
export const TO = 'v1.36.3+k0s.2';
/**
 * A version that no build has. With `forceupdate`, an update to it installs the file at the URL. Most of the original's
 * tests do so.
 */
const NO_VERSION = 'v0.0.0';
const UNFINISHED = ['', 'Schedulable', 'SchedulableWait', DELETED];

const PLAYED: Readonly<Record<string, Combination>> = {
  'our leader, our agents': { leader: 'refit', agents: 'refit' },
  ...COMBINATIONS,
};
/** For `describe.each`: the combinations with which a scenario runs. */
export const PAIRS: readonly (readonly [name: string, combination: Combination])[] =
  Object.entries(PLAYED);

/**
 * Returns Refit alone and the n-th of the other pairs. The scenarios use different pairs. quorum.test.ts runs their
 * common parts with all pairs.
 */
export function pairsWith(nth: 1 | 2 | 3): typeof PAIRS {
  return WHOLE ? PAIRS : PAIRS.filter((_, index) => index === 0 || index === nth);
}

/**
 * Returns a prefix for the names of hosts. It is unique, because kwok applies its knowledge of an earlier Node and its
 * Lease to a new Node of the same name.
 */
export function uniquePrefix(): string {
  return `${randomBytes(3).toString('hex')}-`;
}

type SceneOptions = Omit<MixedOptions, 'combination' | 'onService' | 'offers' | 'version'> &
  Partial<Pick<MixedOptions, 'offers' | 'version'>>;

interface Seen {
  /** The times at which each service was down. */
  readonly outages: Motion;
  /** All statuses of all signals, in the server's order. */
  readonly sightings: readonly Sighting[];
  /** All states of all plans, in order; '' for a plan without a state. */
  readonly states: readonly string[];
}

export class Scene implements AsyncDisposable {
  readonly seen: Seen;
  readonly #mixed: Mixed;
  readonly #auditFrom: number;
  readonly #things: AsyncDisposableStack;

  private constructor(mixed: Mixed, seen: Seen, auditFrom: number, things: AsyncDisposableStack) {
    this.#mixed = mixed;
    this.seen = seen;
    this.#auditFrom = auditFrom;
    this.#things = things;
  }

  static async open(combination: Combination, options: SceneOptions): Promise<Scene> {
    await using things = new AsyncDisposableStack();
    const auditFrom = await endOfAudit();
    const outages = new Motion();
    const mixed = await startMixed({
      version: FROM,
      offers: [FROM, TO],
      agentFlags: ['--soak', '200ms'],
      ...options,
      combination,
      onService: (host, running) => outages[running ? 'end' : 'begin'](host, performance.now()),
    });
    things.use(mixed);
    const { client } = mixed.cluster;
    const stop = new AbortController();
    things.defer(() => stop.abort());
    const sightings = await watchSignals(client, stop.signal);
    const states = await watchStates(client, stop.signal);
    return new Scene(mixed, { outages, sightings, states }, auditFrom, things.move());
  }

  /** A client of the administrator, for setup and observation. */
  get client(): KubeClient {
    return this.#mixed.cluster.client;
  }

  get downloads(): DownloadServer {
    return this.#mixed.cluster.downloads;
  }

  host(name: string): Host {
    const host = this.#mixed.cluster.hosts.find((each) => each.name === name);
    if (host === undefined) throw new Error(`there is no host ${name}`);
    return host;
  }

  /** The URL of that version on the download server. */
  url(version: string): string {
    return this.downloads.url + payloadPath(version);
  }

  /** Returns an update that installs the version `brings`, even if that version already runs. */
  forced(targets: Targets, brings: string = FROM): PlanCommand {
    const platforms = { 'linux-amd64': { url: this.url(brings) } };
    return { k0supdate: { version: NO_VERSION, forceupdate: true, platforms, targets } };
  }

  async create(id: string, ...commands: PlanCommand[]): Promise<void> {
    const apiVersion = 'autopilot.k0sproject.io/v1beta2';
    const metadata = { name: 'autopilot' };
    const plan: Plan = {
      apiVersion,
      kind: 'Plan',
      metadata,
      spec: { id, timestamp: 'now', commands },
    };
    await this.client.create(plans, plan);
  }

  async plan(): Promise<Plan> {
    return await this.client.get(plans, 'autopilot');
  }

  /** Waits for the condition. If it stays false, the error has the last log lines of all processes. */
  async until(condition: () => void | Promise<void>): Promise<void> {
    await this.#mixed.until(async () => await condition());
  }

  /**
   * Waits for the plan's final state. Fails immediately if the final state is not the wanted state, as in the
   * original's tests.
   */
  async ends(state: string): Promise<Plan> {
    await this.until(() => expect(UNFINISHED).not.toContain(this.seen.states.at(-1) ?? ''));
    const plan = await this.plan();
    const said = plan.status?.commands.map(({ description }) => description);
    expect(plan.status?.state, JSON.stringify(said)).toBe(state);
    return plan;
  }

  /** The statuses of a node for that plan, in order; '' before the first. */
  statusesOf(name: string, planId: string): string[] {
    return this.seen.sightings
      .filter((each) => each.name === name && each.planId === planId)
      .map(({ status }) => status);
  }

  async deletePlan(): Promise<void> {
    await this.client.delete(plans, 'autopilot').catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    await this.until(() => expect(this.seen.states.at(-1) ?? DELETED).toBe(DELETED));
  }

  /** Returns the requests of all users since the scene was opened, if their line in the log contains `text`. */
  async audited(text: string): Promise<AuditEvent[]> {
    return await auditedSince(this.#auditFrom, text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#things.disposeAsync();
  }
}

type Update = NonNullable<PlanCommand['k0supdate']>;
type Targets = Update['targets'];

/** One scene for all tests of a `describe`. Each test creates one plan at most. */
export function useScene(combination: Combination, options: SceneOptions): () => Scene {
  let scene: Scene | undefined;
  const current = (): Scene => {
    if (scene === undefined) throw new Error('the scene is not open yet');
    return scene;
  };
  beforeAll(async () => {
    scene = await Scene.open(combination, options);
  });
  afterEach(async () => await scene?.deletePlan());
  afterAll(async () => await scene?.[Symbol.asyncDispose]());
  return current;
}

/** Every target of every command, as `<name> <state>`. */
export function targetsIn({ status }: Plan): string[] {
  const told = (entries: readonly TargetStatus[] = []): string[] =>
    entries.map(({ name, state }) => `${name} ${state}`);
  return (status?.commands ?? []).flatMap(({ k0supdate, airgapupdate }) => [
    ...told(airgapupdate?.workers),
    ...told(k0supdate?.controllers),
    ...told(k0supdate?.workers),
  ]);
}
