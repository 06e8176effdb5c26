/** The world of one scene of the table: a small cluster of one dialect, whose hosts do what the scene says. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import type { DialectModule } from '../../src/cli/contract/dialect-module.ts';
import type { StatusJson } from '../../src/cli/status/json-form.ts';
import type { TargetPhase } from '../../src/engine/model/shown-phases.ts';
import { nodes } from '../../src/kube/resources.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { seededRandom } from '../faults/random.ts';
import { policyWith } from '../scenes/k0s-scene.ts';
import { Stage } from '../scenes/stage.ts';
import { GroundTruth } from '../truth/ground-truth.ts';
import type { Crew } from '../truth/labs/crew.ts';
import type { Scenery } from '../truth/labs/lab.ts';
import { HookJobs } from './hook-jobs.ts';
import { kubelets } from './kubelets.ts';

/** The names of the dialects in the table of features. */
export type DialectName = 'k0s' | 'system-upgrade-controller' | 'kubeadm' | 'Cluster API';

/** How the cluster of a scene is built. */
export interface Setting {
  /** The most nodes that the plan, or Cluster API, upgrades at once; 1 by default. */
  readonly concurrent?: number;
  /** True if the leader drains the nodes of a Plan of Rancher, and not their Jobs. The other dialects have no choice. */
  readonly leaderDrains?: boolean;
}

/** What the scenes need of a dialect. */
export interface DialectUnderTest {
  readonly name: DialectName;
  readonly module: DialectModule;
  /** The three nodes that an upgrade changes, in the order in which it starts them. */
  readonly nodes: readonly [string, string, string];
  /** The versions before and after the upgrade, as the hosts spell them. */
  readonly from: string;
  readonly to: string;
  /** Creates the cluster, and starts its leader and its hosts. */
  readonly open: (world: World) => Promise<Crew>;
  /** Begins the upgrade of all nodes. */
  readonly begin: (world: World) => Promise<void>;
  /** Returns the name of the plan that upgrades the node, as the commands spell it. */
  readonly planOf: (node: string) => string;
  /** Deletes the plan. What Kubernetes deletes together with it is deleted, too. */
  readonly deletePlan: (world: World) => Promise<void>;
  /** Lets another node join the cluster. */
  readonly join: (world: World, node: string) => Promise<void>;
  /** Begins the way back to the earlier version, as a person does it in this dialect. */
  readonly rollBack: (world: World) => Promise<void>;
  /** True if another controller chooses which node comes next. */
  readonly isChosenElsewhere?: true;
}

/** One attempt to upgrade a node, which was seen where it begins: in a signal, in a Job, or on a host. */
export interface Start {
  readonly node: string;
  /** Names the attempt. */
  readonly attempt: string;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
}

export type OpenStage = (directory: string) => Promise<Stage>;

/** The second of a scene at which its upgrade begins. */
const BEGIN = 60;
/** The most seconds that a scene waits for something, unless it says otherwise. */
const PATIENCE = 300;

export class World implements AsyncDisposable {
  /** The attempts on the nodes of the plan, the oldest first. */
  readonly starts: Start[] = [];
  /** The hosts that still run the earlier version after their upgrade. */
  readonly stuck = new Set<string>();
  readonly hooks: HookJobs;
  readonly dialect: DialectUnderTest;
  readonly setting: Setting;
  readonly scenery: Scenery;
  readonly #directory: string;
  #crew: Crew | undefined;

  private constructor(
    dialect: DialectUnderTest,
    setting: Setting,
    scenery: Scenery,
    directory: string,
  ) {
    this.dialect = dialect;
    this.setting = setting;
    this.scenery = scenery;
    this.#directory = directory;
    this.hooks = new HookJobs(scenery.stage);
  }

  /** `openStage` opens a stage whose files are in the directory; by default, a stage on the API server in memory. */
  static async open(
    dialect: DialectUnderTest,
    setting: Setting = {},
    openStage: OpenStage = async (directory) => await Stage.open(directory),
  ): Promise<World> {
    const directory = await mkdtemp(join(tmpdir(), 'refit-dialects-'));
    const stage = await openStage(directory);
    const scenery = { stage, truth: new GroundTruth(), random: seededRandom(1) };
    return new World(dialect, setting, scenery, directory);
  }

  get stage(): Stage {
    return this.scenery.stage;
  }

  get truth(): GroundTruth {
    return this.scenery.truth;
  }

  /** Builds the cluster with this policy for all plans. The upgrade has not begun yet. */
  async build(policy?: UpgradePolicySpec): Promise<void> {
    if (policy) await this.setPolicy(policy);
    this.#crew = await this.dialect.open(this);
    await this.stage.start(async () => await Promise.resolve(this.hooks));
    await this.stage.start(kubelets);
    await this.stage.waitUntil(BEGIN);
  }

  get crew(): Crew {
    if (!this.#crew) throw new Error('the world is not built yet');
    return this.#crew;
  }

  /** Returns the names of the nodes whose attempts have begun, in order. A node that is tried twice is listed twice. */
  get started(): string[] {
    return this.starts.map(({ node }) => node);
  }

  /** Records an attempt of which a host, or an object, shows the begin. */
  noteStart(node: string, attempt: string): void {
    if (!this.truth.hosts.has(node) || this.starts.some((known) => known.attempt === attempt))
      return;
    this.starts.push({ node, attempt, at: this.stage.clock.now() });
  }

  isUpgraded(node: string): boolean {
    return this.truth.runs.get(node) === this.dialect.to;
  }

  /** Lets the time pass. */
  async pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      await this.stage.wait(1);
      this.truth.noticeUpgrades(this.stage.clock.now());
    }
  }

  /** Lets the time pass until the condition holds. Fails with what Refit says if it does not come true. */
  async until(
    what: string,
    condition: () => boolean | Promise<boolean>,
    seconds = PATIENCE,
  ): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      if (await condition()) return;
      await this.pass(1);
    }
    const said = await this.refit('status', '-o', 'wide');
    const why = await this.refit('why');
    throw new Error(`after ${seconds} s, it is not true that ${what}:\n${said}\n${why}`);
  }

  async untilUpgraded(...names: readonly string[]): Promise<void> {
    const areUpgraded = (): boolean => names.every((name) => this.isUpgraded(name));
    await this.until(`${names.join(', ')} run the new version`, areUpgraded);
  }

  async untilStarted(name: string): Promise<void> {
    await this.until(`${name} has started`, () => this.started.includes(name));
  }

  /** Lets the time pass until Refit says that the node is in this phase. */
  async untilPhase(name: string, phase: TargetPhase): Promise<void> {
    const isInPhase = async (): Promise<boolean> => (await this.saidOf(name))?.phase === phase;
    await this.until(`${name} is ${phase}`, isInPhase);
  }

  /** Runs a command of `refit`, and returns what it prints. */
  async refit(...args: readonly string[]): Promise<string> {
    return await this.stage.answer(...args);
  }

  async status(): Promise<StatusJson> {
    return JSON.parse(await this.refit('status', '-o', 'json')) as StatusJson;
  }

  /** Returns what `refit status -o json` says about the node, of the plan that contains it. */
  async saidOf(node: string) {
    const { plans } = await this.status();
    return plans
      .flatMap(({ stages }) => stages.flatMap(({ targets }) => targets))
      .find(({ name }) => name === node);
  }

  /** Replaces the policy of all plans. */
  async setPolicy(spec: UpgradePolicySpec): Promise<void> {
    const wanted = policyWith(spec);
    const { name } = wanted.metadata;
    const old = await ifFound(this.stage.client.get(upgradePolicies, name));
    if (!old) return await this.stage.create(upgradePolicies, wanted);
    await this.stage.client.replace(upgradePolicies, { ...old, spec });
  }

  async label(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
    await this.stage.client.patch(nodes, name, { metadata: { labels } }, { type: 'merge' });
  }

  /** Returns the names of the nodes that are cordoned. */
  async cordoned(): Promise<string[]> {
    const { items } = await this.stage.client.list(nodes);
    return items.flatMap(({ metadata, spec }) =>
      spec?.unschedulable === true ? [metadata.name] : [],
    );
  }

  /** The leader dies without a word. */
  async killLeader(): Promise<void> {
    if (this.crew.leader) await this.stage.end(this.crew.leader);
    this.crew.leader = undefined;
  }

  async startLeader(): Promise<void> {
    this.crew.leader ??= await this.stage.start(this.crew.start);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stage[Symbol.asyncDispose]();
    await rm(this.#directory, { recursive: true });
  }
}
