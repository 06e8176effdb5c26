/** Owns the question which dialects a cluster has: few have all, and one is enough. */
import type { Dialect } from '../../engine/dialect.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isForbidden } from '../../kube/status-error.ts';
import { loadOnce } from './load.ts';

/**
 * Those whose kinds are served. Kinds that every API server has tell nothing, so where there are no others a dialect of
 * those counts by its plans. All of them where none is left, so that whoever asks for one learns what is missing.
 */
export async function installedOf(
  client: KubeClient,
  dialects: readonly Dialect[],
  abort: AbortSignal,
): Promise<readonly Dialect[]> {
  const answers = await Promise.all(
    dialects.map(async ({ plans: { group, version } }) => {
      const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
      return (await client.raw(path, { abort })).status;
    }),
  );
  const served: Dialect[] = [];
  for (const [index, dialect] of dialects.entries()) {
    if (answers[index] !== 404 && (await mayBeSeen(client, dialect, abort))) served.push(dialect);
  }
  if (served.some(({ plans }) => plans.group !== '')) return served;
  const plans = await Promise.all(served.map(async (each) => (await loadOnce(client, each, abort)).plans()));
  const used = served.filter((_dialect, index) => plans[index]?.length !== 0);
  return used.length > 0 ? used : dialects;
}

/** Of kinds that every API server has, few may see all: a dialect whose plans are kept from somebody is not there for them. */
async function mayBeSeen(client: KubeClient, dialect: Dialect, abort: AbortSignal): Promise<boolean> {
  const { plans, scope: { namespace, fieldSelector } = {} } = dialect;
  if (plans.group !== '') return true;
  try {
    await client.list(plans, { limit: 1, namespace, fieldSelector, abort });
    return true;
  } catch (error) {
    if (isForbidden(error)) return false;
    throw error;
  }
}
