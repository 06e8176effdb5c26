/** Owns what only the API server can say against a new Plan: objects of kinds that its versions do not serve any more. */
import type { Plan } from '../../api/autopilot/plan.ts';
import { because, type Reason } from '../../engine/model/reasons.ts';
import type { KubeClient } from '../../kube/client.ts';
import { askRemovedApis } from './removed-apis.ts';

const NEVER = new AbortController().signal;

/** As k0s: a forced update is not asked about, a bundle is. The first version that has something against it is told. */
export async function preconditions(
  client: KubeClient,
  { spec }: Plan,
  abort: AbortSignal = NEVER,
): Promise<readonly Reason[]> {
  for (const version of new Set(spec.commands.flatMap(versionsOf))) {
    const objection = await askRemovedApis(client, version, abort);
    if (objection !== undefined) return [because('RemovedApis', objection)];
  }
  return [];
}

function versionsOf({ k0supdate, airgapupdate }: Plan['spec']['commands'][number]): string[] {
  const update = k0supdate && k0supdate.forceupdate !== true ? [k0supdate.version] : [];
  return [...(airgapupdate ? [airgapupdate.version] : []), ...update];
}
