/** One controller of Rancher's Plans on the real API server, and functions with which tests read its Plans. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { events, type Job, jobs, nodes } from '../../src/kube/resources.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import { conditionOf, installKinds, NAMESPACE, nodeOf, startController } from './cattle-rig.ts';
import { kubectlAs, ON_SERVER } from './control-plane.ts';
import { clientOf } from './drain-stage.ts';

export const PATIENCE = { timeout: 150_000, interval: 200 };
export const TAINT = 'example.com/held';

export class CattleScene {
  readonly admin: KubeClient;
  readonly directory: string;
  readonly #nodes: readonly string[];
  readonly #controller: Process;

  private constructor(
    admin: KubeClient,
    directory: string,
    names: readonly string[],
    controller: Process,
  ) {
    this.admin = admin;
    this.directory = directory;
    this.#nodes = names;
    this.#controller = controller;
  }

  /**
   * Starts a scene with these nodes, by their pool. `prepare` runs when the nodes exist, before the controller starts.
   */
  static async open(
    pools: Readonly<Record<string, readonly string[]>>,
    prepare: () => Promise<void> = () => Promise.resolve(),
  ): Promise<CattleScene> {
    const directory = await mkdtemp(join(tmpdir(), 'refit-cattle-'));
    for (const folder of ['logs', 'pids']) await mkdir(join(directory, folder));
    const admin = await clientOf('admin');
    for (const [pool, names] of Object.entries(pools))
      for (const name of names) await admin.create(nodes, nodeOf(name, { pool }));
    await installKinds();
    await prepare();
    const controller = await startController(directory, { SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT: '0' });
    return new CattleScene(admin, directory, Object.values(pools).flat(), controller);
  }

  async close(): Promise<void> {
    await this.#controller.stop();
    await kubectlAs('admin', ['delete', 'plans.upgrade.cattle.io', '--all', '-n', NAMESPACE]);
    await vi.waitFor(async () => expect(await this.jobsOf()).toEqual([]), PATIENCE);
    for (const name of this.#nodes) await this.admin.delete(nodes, name);
    this.admin.close();
    await rm(this.directory, { recursive: true });
  }

  async apply(plan: CattlePlan): Promise<void> {
    const { stderr } = await kubectlAs('admin', ON_SERVER, JSON.stringify(plan));
    expect(stderr).toBe('');
  }

  async patch(name: string, change: object): Promise<void> {
    await this.admin.patch(cattlePlans, name, change, { namespace: NAMESPACE, type: 'merge' });
  }

  async plan(name: string): Promise<CattlePlan> {
    return await this.admin.get(cattlePlans, name, { namespace: NAMESPACE });
  }

  /** Resolves with the plan when the condition has that status and reason. */
  async until(name: string, type: string, status: string, reason: string): Promise<CattlePlan> {
    return await vi.waitFor(async () => {
      const found = await this.plan(name);
      const { status: is, reason: why } = conditionOf(found, type);
      expect({ type, status: is, reason: why }).toEqual({ type, status, reason });
      return found;
    }, PATIENCE);
  }

  /** Returns the Jobs of the Plan; the Jobs of all Plans by default. */
  async jobsOf(plan?: string): Promise<Job[]> {
    const label = 'upgrade.cattle.io/plan';
    const labelSelector = plan === undefined ? label : `${label}=${plan}`;
    return (await this.admin.list(jobs, { namespace: NAMESPACE, labelSelector })).items;
  }

  /** Waits for the only Job of the Plan. */
  async onlyJobOf(plan: string): Promise<Job> {
    return await vi.waitFor(async () => {
      const [job, ...others] = await this.jobsOf(plan);
      if (!job || others.length > 0) throw new Error(`not one Job of ${plan}`);
      return job;
    }, PATIENCE);
  }

  async messagesOf(name: string, reason: string): Promise<string> {
    const { items } = await this.admin.list(events, {
      fieldSelector: `involvedObject.name=${name},reason=${reason}`,
    });
    return items.map(({ message }) => message).join(' ');
  }

  /**
   * Prevents the scheduling of pods of the Plan's Jobs to these nodes until the test ends or the returned function is
   * called.
   */
  async hold(...names: readonly string[]): Promise<() => Promise<void>> {
    await kubectlAs('admin', ['taint', 'node', ...names, `${TAINT}=yes:NoSchedule`]);
    const release = async (): Promise<void> =>
      void (await kubectlAs('admin', ['taint', 'node', ...names, `${TAINT}-`]));
    onTestFinished(release);
    return release;
  }
}
