/** Creates the CRD of Rancher's Plans at start if it is missing. The original always does so; here it must be asked for. */
import { parse } from 'yaml';
import { cattlePlans } from '../api/cattle/plan.ts';
import { type CustomResourceDefinition, customResourceDefinitions } from '../api/crd.ts';
import type { KubeClient } from '../kube/client.ts';
import { ifFound, ifNew } from '../kube/status-error.ts';
import { type Clock, sleep } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import { deployFile } from './deploy-files.ts';

const POLL_MS = 200;
/** As in the original. */
const PATIENCE_MS = 60_000;

/** Never changes an existing CRD: it may have labels of a package manager, or newer fields. Resolves once Plans are served. */
export async function installPlans(client: KubeClient, namespace: string, clock: Clock, abort: AbortSignal) {
  const isServed = async (): Promise<boolean> =>
    (await ifFound(client.list(cattlePlans, { limit: 1, namespace, abort }))) !== undefined;
  if (await isServed()) return;
  const definition = parse(deployFile('chart/manifests/cattle/kinds.yaml')) as CustomResourceDefinition;
  await ifNew(client.create(customResourceDefinitions, definition, { abort }));
  const { name } = definition.metadata;
  const late = `${name} is not served after ${formatDuration(PATIENCE_MS)}: check its CustomResourceDefinition`;
  for (const end = clock.monotonic() + PATIENCE_MS; !(await isServed()); await sleep(clock, POLL_MS, abort))
    if (clock.monotonic() > end) throw new Error(late);
}
