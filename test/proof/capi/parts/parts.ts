/** The parts of the proof, by the names that `--only` takes. */
import type { Scene } from '../scene.ts';
import { agentGone } from './agent-gone.ts';
import { ahead } from './ahead.ts';
import { badAnswers } from './bad-answers.ts';
import { certManager } from './cert-manager.ts';
import { deletedMidway } from './deleted-midway.ts';
import { drainRulesKept } from './drain-rules.ts';
import { failedUpdate } from './failed-update.ts';
import { interfered } from './interfered.ts';
import { killed } from './killed.ts';
import { noAnswer } from './no-answer.ts';
import { oneControlPlane } from './one-control-plane.ts';
import { closedWindow } from './owners/closed-window.ts';
import { onePlan } from './owners/one-plan.ts';
import { paused } from './paused.ts';
import { remediation } from './remediation.ts';
import { observed } from './schema.ts';
import { secondCluster } from './second-cluster.ts';
import { sizes } from './sizes.ts';
import { twoUpdaters } from './two-updaters.ts';
import { uncovered } from './uncovered.ts';
import { workloadClusters } from './workload-clusters.ts';
import { wrongAuthority } from './wrong-authority.ts';

/**
 * The parts by their names. Each part leaves the cluster as the next part needs it: settled, and without an UpdaterSet.
 */
export const PARTS: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  update: observed,
  uncovered,
  killed,
  'two-updaters': twoUpdaters,
  'no-answer': noAnswer,
  'failed-update': failedUpdate,
  'deleted-midway': deletedMidway,
  paused,
  'drain-rules': drainRulesKept,
  remediation,
  'bad-answers': badAnswers,
  ahead,
  interfered,
  sizes,
  'one-plan': onePlan,
  'closed-window': closedWindow,
  'wrong-authority': wrongAuthority,
  'agent-gone': agentGone,
  'one-control-plane': oneControlPlane,
  'second-cluster': secondCluster,
  'workload-clusters': workloadClusters,
  'cert-manager': certManager,
};

/**
 * The part that needs a build of cert-manager and does not remove its certificates at the end. It runs only if `--only`
 * names it.
 */
export const NEEDS_CERT_MANAGER = 'cert-manager';

/** The parts about plans with several Machines. They run only with `--rollouts owner`. */
export const NEED_OWNERS = ['one-plan', 'closed-window'];

/** The parts that run for all releases except the newest release. */
export const PARTS_OF_EARLIER = ['update'];
