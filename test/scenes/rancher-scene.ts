/** What scenes with Plans of Rancher have in common: a cluster with two servers and two agents, and one or two Plans. */
import { cattlePlans, upgradePolicies } from '../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { type Job, jobs } from '../../src/kube/resources.ts';
import type { CattleSpec } from '../support/builders/cattle-plans.ts';
import { policyWith } from './k0s-scene.ts';
import {
  createRancherCluster,
  type JobEnd,
  jobRunner,
  k3sPlan,
  NAMESPACE,
  rancherController,
} from './rancher.ts';
import type { Scene } from './scene.ts';
import { showAll } from './shown.ts';
import type { Stage } from './stage.ts';

/** The second of a scene in which its Plans are created. */
const BEGIN = 60;
export const FLAGS = { namespace: NAMESPACE } as const;

interface Given {
  readonly server?: Partial<CattleSpec>;
  /** The Plan for the agents; absent if the scene has none. */
  readonly agent?: Partial<CattleSpec>;
  readonly end?: JobEnd;
  /** False if no node can pull an image before its turn. */
  readonly canPull?: boolean;
  readonly policy?: UpgradePolicySpec;
  readonly before?: (stage: Stage) => Promise<void>;
  readonly play: (stage: Stage) => Promise<void>;
  readonly about?: readonly string[];
  readonly isLed?: boolean;
}

/** A cluster with two servers and two agents. */
export function rancherScene(name: string, given: Given): Scene {
  return {
    name,
    async play(stage) {
      await createRancherCluster(stage, 2, 2);
      if (given.policy) await stage.create(upgradePolicies, policyWith(given.policy));
      await given.before?.(stage);
      if (given.isLed !== false) await stage.start(rancherController);
      await stage.start(jobRunner(given.end, new Map(), given.canPull));
      await stage.waitUntil(BEGIN);
      await stage.create(cattlePlans, k3sPlan('server', given.server));
      if (given.agent) await stage.create(cattlePlans, k3sPlan('agent', given.agent));
      await given.play(stage);
      await showAll(stage, cattlePlans, given.about ?? ['s1']);
    },
  };
}

export const FAILS_ON_S1: JobEnd = (node) => ({
  seconds: 10,
  result: node === 's1' ? 'failed' : 'installed',
});
export const PLAN = 'cattle/system-upgrade/k3s-server';

export async function removeJobs(stage: Stage, node: string): Promise<void> {
  const labelSelector = `upgrade.cattle.io/node=${node}`;
  const found: readonly Job[] = (await stage.client.list(jobs, { labelSelector })).items;
  for (const { metadata } of found) await stage.client.delete(jobs, metadata.name, FLAGS);
}
