/** Gate: no kubelet may become newer than any API server of the cluster, whether the plan lists that server or not. */
import { type ApiServer, judgePlan } from '../../versions/plan-rules.ts';
import type { Reason } from '../model/reasons.ts';
import { momentAfter, recordedUpgrade } from '../snapshot/recorded-versions.ts';
import { type Gate, PASS } from './types.ts';

/** This gate never stops a target, because the API servers can still be upgraded. */
export const apiServersFirst: Gate = {
  name: 'api-servers-first',
  ofRollout: true,
  evaluate({ stage, target: { name }, facts, earlier, apiServers, policy: { allow }, now }) {
    if (!apiServers || stage.keepsVersion === true) return PASS;
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
      ...recordedUpgrade(earlier, 'controller', server.name),
    }));
    const times = brought.flatMap((server) => ('since' in server ? server.since : []));
    const since = times.toSorted().at(-1);
    const moment = since === undefined || judge(brought) ? {} : momentAfter(since, now);
    return {
      kind: 'wait',
      reason,
      ends: 'those API servers are upgraded, or the plan is corrected',
      ...moment,
    };
  },
};
