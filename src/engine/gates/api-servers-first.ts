/** Gate: no kubelet may become newer than any API server of the cluster, whether the plan lists that server or not. */
import { kubeletVersionOf } from '../../kube/resources.ts';
import { virtualBy } from '../../kube/virtual-nodes.ts';
import { type ApiServer, judgePlan, kubeletsLeftAhead } from '../../versions/plan-rules.ts';
import type { Reason } from '../model/reasons.ts';
import { withKubernetesVersion } from '../model/rollout.ts';
import { momentAfter, recordedUpgrade } from '../snapshot/recorded-versions.ts';
import { type Gate, type GateInput, PASS, type Verdict } from './types.ts';

/** Milliseconds until the rule is checked again, if no watch shows when an API server gets another version. */
const RECHECK_MS = 60_000;

/** This gate never stops a target, because the API servers can still be upgraded. */
export const apiServersFirst: Gate = {
  name: 'api-servers-first',
  ofRollout: true,
  evaluate(input) {
    const { target, facts, earlier, policy, now } = input;
    const { apiServers } = input.cluster;
    const { name } = target;
    const { allow } = policy;
    const stage = withKubernetesVersion(input.stage);
    if (!apiServers || stage.keepsVersion === true) return PASS;
    // The API server of such a target gets the version together with the kubelet.
    if (apiServers.some((server) => server.isOfKubelet === true && server.name === name))
      return kubeletsFirst(input, stage.version);
    const hasKubelet = stage.role === 'worker' || facts.node !== undefined;
    const judge = (servers: readonly ApiServer[]): Reason | undefined =>
      judgePlan([{ ...stage, targets: [{ name, hasKubelet }] }], servers, allow).problems[0];
    // While controllers are upgraded, the kubelet of one controller may be newer than the API servers of other
    // controllers.
    const isMoving = (server: ApiServer): boolean =>
      stage.role === 'controller' && stage.targets.some((target) => target.name === server.name);
    const servers = apiServers.filter((server) => !isMoving(server));
    const reason = judge(servers);
    if (!reason) return PASS;
    const brought = servers.map((server) => ({
      ...server,
      ...recordedUpgrade(input, earlier, 'controller', server.name),
    }));
    const times = brought.flatMap((server) => ('since' in server ? server.since : []));
    const since = times.toSorted().at(-1);
    const moment = since === undefined || judge(brought) ? {} : momentAfter(since, now);
    return {
      kind: 'wait',
      reason,
      ends: 'those API servers are upgraded, or the plan is corrected',
      ...moment,
      ...(input.abilities.waitsForVersions && servers.some(({ isOfKubelet }) => !isOfKubelet)
        ? { recheckMs: RECHECK_MS }
        : {}),
    };
  },
};

/** Returns a wait while a kubelet of another Node would be newer than the API server of the target. */
function kubeletsFirst(
  {
    target: { name },
    cluster: { apiServers = [], fleet = [] },
    policy: { allow, countsVirtual },
  }: GateInput,
  version: string,
): Verdict {
  const servers = new Set(apiServers.map((server) => server.name));
  const agents = fleet
    .filter((node) => countsVirtual === true || virtualBy(node) === undefined)
    .filter(({ metadata }) => !servers.has(metadata.name))
    .map((node) => ({ name: node.metadata.name, version: kubeletVersionOf(node) }));
  const reason = kubeletsLeftAhead({ name, version }, agents, allow);
  if (!reason) return PASS;
  return { kind: 'wait', reason, ends: 'those kubelets are older, or a policy allows it' };
}
