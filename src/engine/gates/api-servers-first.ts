/** Gate: no kubelet gets newer than an API server is now, of controllers outside of the plan too. */

import { judgePlan } from '../../versions/plan-rules.ts';
import type { ApiServerVersion } from '../model/observed.ts';
import type { Reason } from '../model/reasons.ts';
import { broughtTo, momentAfter } from '../observe/recorded-versions.ts';
import { type Gate, PASS } from './types.ts';

const ENDS = 'those API servers report a version that is new enough, or the plan is corrected';

/** Whoever is behind can still be upgraded, so this never ends a plan. */
export const apiServersFirst: Gate = {
  name: 'api-servers-first',
  ofRollout: true,
  evaluate({ stage, target: { name }, facts, earlier, apiServers = [], policy: { allow }, now }) {
    if (stage.keepsVersion === true) return PASS;
    const hasKubelet = stage.role === 'worker' || facts.node !== undefined;
    const judge = (servers: readonly ApiServerVersion[]): Reason | undefined =>
      judgePlan([{ ...stage, targets: [{ name, hasKubelet }] }], servers, allow).problems[0];
    // While controllers move, one kubelet is ahead of the rest for as long as that takes.
    const moving = new Set(stage.role === 'controller' ? stage.targets.map((target) => target.name) : []);
    const servers = apiServers.filter((server) => !moving.has(server.name));
    const reason = judge(servers);
    if (!reason) return PASS;
    const brought = servers.map((server) => ({ ...server, ...broughtTo(earlier, 'controller', server.name) }));
    const since = brought
      .flatMap((server) => ('since' in server ? server.since : []))
      .toSorted()
      .at(-1);
    return {
      kind: 'wait',
      reason,
      ends: ENDS,
      ...(since === undefined || judge(brought) ? {} : momentAfter({ since }, now)),
    };
  },
};
