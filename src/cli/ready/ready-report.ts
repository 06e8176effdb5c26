/** Makes the checks of `refit ready` for a command, with what its user may read. */
import { upgradePolicies } from '../../api/kinds.ts';
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { homeOf } from '../../composition/own-namespaces.ts';
import { readPolicy } from '../../engine/policy/read-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ClusterConfig } from '../../kube/config/cluster-config.ts';
import { answer, namesOf, unknown } from '../../ready/asking.ts';
import { clusterContext } from '../../ready/cluster-context.ts';
import type { Check, DialectReadiness, PolicyCheck } from '../../ready/context.ts';
import type { Accepted, ReadyReport } from '../../ready/finding.ts';
import { askReadiness } from '../../ready/readiness.ts';
import type { Clock } from '../../util/clock.ts';
import type { Policies } from '../status/load.ts';
import { policyGround } from './ground/policies.ts';

export interface ReportParts {
  readonly config: ClusterConfig;
  readonly client: KubeClient;
  readonly policies: Pick<Policies, 'list' | 'unseen'>;
  readonly dialects: readonly DialectReadiness[];
  /** What is asked about the machines besides. */
  readonly groundChecks?: readonly Check[];
  /** The port of every API server. The default is the port in the EndpointSlices. */
  readonly apiPort?: number | undefined;
  readonly readsHelmReleases?: boolean | undefined;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

/**
 * Returns a function that makes the report for a version. The reports for several versions share what the API server
 * answers, so each list is read only once.
 */
export function readyReporter(
  { policies: { unseen, list }, groundChecks = [], ...parts }: ReportParts,
  accepted: Accepted = new Map(),
): (to: string) => Promise<ReadyReport> {
  const policies =
    unseen === undefined ? answer(list()) : unknown(`you may not read ${namesOf(upgradePolicies)}`);
  const context = clusterContext({
    ...parts,
    namespace: homeOf(parts.config),
    environment: process.env,
    policyChecks: policies.kind === 'unknown' ? policies : answer(policies.value.flatMap(checksOf)),
    groundChecks: [policyGround({ ...parts, policies }), ...groundChecks],
  });
  return async (to) => await askReadiness({ ...context, to }, accepted);
}

function checksOf(policy: UpgradePolicy): PolicyCheck[] {
  const { health } = readPolicy(policy);
  return (health?.checks ?? []).flatMap((check) =>
    // Whether the cluster is ready is what these checks find out.
    check.kind === 'readiness' ? [] : { policy: policy.metadata.name, check },
  );
}
