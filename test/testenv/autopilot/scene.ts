/** Owns a stand-in cluster in which integration tests of the original are played again, and what the outside sees of it. */
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { payloadPath } from '../../../sandbox/cluster/cluster.ts';
import type { DownloadServer } from '../../../sandbox/hosts/download-server.ts';
import type { Host } from '../../../sandbox/hosts/host.ts';
import { type Plan, type PlanCommand, plans, type TargetStatus } from '../../../src/api/autopilot/plan.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { COMBINATIONS, type Combination, type Mixed, type MixedOptions, startMixed } from '../../doubles/mixed.ts';
import { Motion } from '../../expectations/motion.ts';
import { type Sighting, watchSignals } from '../../expectations/signal-watch.ts';
import { kubectlAs } from '../control-plane.ts';
import { type AuditEvent, auditedSince, endOfAudit } from './audit.ts';
import { DELETED, watchStates } from './plan-states.ts';

export const FROM = 'v1.36.3+k0s.0';
export const TO = 'v1.36.3+k0s.2';
/** That no build has: together with force it installs whatever lies at the URL, as most of the original's own tests do. */
const NO_VERSION = 'v0.0.0';
const UNFINISHED = ['', 'Schedulable', 'SchedulableWait', DELETED];

const PLAYED: Readonly<Record<string, Combination>> = {
  'our leader, our agents': { leader: 'refit', agents: 'refit' },
  ...COMBINATIONS,
};
/** For `describe.each`: everything that a scenario is played in. */
export const PAIRS: readonly (readonly [name: string, combination: Combination])[] = Object.entries(PLAYED);

/** Before the names of hosts: what kwok knew of a Node, and of its lease, it goes by when one of that name is created anew. */
export function uniquePrefix(): string {
  return `${randomBytes(3).toString('hex')}-`;
}

type SceneOptions = Omit<MixedOptions, 'combination' | 'onService' | 'offers' | 'version'> &
  Partial<Pick<MixedOptions, 'offers' | 'version'>>;

interface Seen {
  /** When which service was down. */
  readonly outages: Motion;
  /** Every status of every signal, in the order of the server. */
  readonly sightings: readonly Sighting[];
  /** Every state of every plan, in order; '' where it had none. */
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

  /** As administrator: to set up, and to look. */
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

  /** Where the download server has that version. */
  url(version: string): string {
    return this.downloads.url + payloadPath(version);
  }

  /** An update that installs what lies at the URL of `brings`, whatever runs. */
  forced(targets: Targets, brings: string = FROM): PlanCommand {
    const platforms = { 'linux-amd64': { url: this.url(brings) } };
    return { k0supdate: { version: NO_VERSION, forceupdate: true, platforms, targets } };
  }

  async create(id: string, ...commands: PlanCommand[]): Promise<void> {
    const [apiVersion, metadata] = ['autopilot.k0sproject.io/v1beta2', { name: 'autopilot' }];
    const plan: Plan = { apiVersion, kind: 'Plan', metadata, spec: { id, timestamp: 'now', commands } };
    const { stderr } = await kubectlAs('admin', ['create', '-f', '-'], JSON.stringify(plan));
    expect(stderr).toBe('');
  }

  async plan(): Promise<Plan> {
    return await this.client.get(plans, 'autopilot');
  }

  /** Waits for the condition; where it stays false, everybody's last words come with it. */
  async until(condition: () => void | Promise<void>): Promise<void> {
    await this.#mixed.until(async () => await condition());
  }

  /** Waits for the plan's last state, as the original's tests do: any other than the wanted one is a failure at once. */
  async ends(state: string): Promise<Plan> {
    await this.until(() => expect(UNFINISHED).not.toContain(this.seen.states.at(-1) ?? ''));
    const plan = await this.plan();
    const said = plan.status?.commands.map(({ description }) => description);
    expect(plan.status?.state, JSON.stringify(said)).toBe(state);
    return plan;
  }

  /** The statuses that a node showed for that plan, in order; '' before the first. */
  statusesOf(name: string, planId: string): string[] {
    return this.seen.sightings
      .filter((each) => each.name === name && each.planId === planId)
      .map(({ status }) => status);
  }

  async deletePlan(): Promise<void> {
    const { ok } = await kubectlAs('admin', [
      'delete',
      'plans.autopilot.k0sproject.io',
      'autopilot',
      '--ignore-not-found',
    ]);
    expect(ok).toBe(true);
    await this.until(() => expect(this.seen.states.at(-1) ?? DELETED).toBe(DELETED));
  }

  /** Every request that was answered since the scene was opened, whoever made it. */
  async audited(): Promise<AuditEvent[]> {
    return await auditedSince(this.#auditFrom);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#things.disposeAsync();
  }
}

type Update = NonNullable<PlanCommand['k0supdate']>;
type Targets = Update['targets'];

/** For a whole `describe`: one scene for all of its tests, which each create one plan at most. */
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
