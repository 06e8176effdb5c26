/** Owns the question which dialects a cluster has: few have all, and one is enough. */
import type { Dialect } from '../../engine/dialect.ts';
import type { KubeClient } from '../../kube/client.ts';

/** Those whose group of kinds is served; all of them where none is, so that whoever asks for one learns what is missing. */
export async function installedOf(
  client: KubeClient,
  dialects: readonly Dialect[],
  signal: AbortSignal,
): Promise<readonly Dialect[]> {
  const answers = await Promise.all(
    dialects.map(async ({ plans: { group, version } }) => {
      const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
      return (await client.raw(path, { signal })).status;
    }),
  );
  const installed = dialects.filter((_dialect, index) => answers[index] !== 404);
  return installed.length > 0 ? installed : dialects;
}
