/**
 * Finds out whether the tools that a policy names are installed. If such a tool is missing, nothing ever waits for it,
 * and its author should know.
 */
import type { KubeClient } from '../kube/client.ts';
import { isForbidden } from '../kube/status-error.ts';
import { locksOf } from './locks.ts';
import type { LockClient, ToolName } from './tool.ts';
import { TOOLS } from './tools.ts';

/** A tool of a policy that was not found. `notFound` is a sentence for people. */
export interface MissingTool {
  readonly tool: ToolName;
  readonly notFound: string;
}

/**
 * Resolves with the tools that have kinds of their own, and whose kinds the API server does not serve. Any user may ask
 * which kinds are served. If the API server gives no clear answer, the tool counts as found.
 */
export async function unservedTools(
  client: Pick<KubeClient, 'raw'>,
  coordinate: readonly ToolName[],
  abort: AbortSignal,
): Promise<MissingTool[]> {
  const asked = TOOLS.filter(({ name }) => coordinate.includes(name)).map(
    async ({ name, title, group }): Promise<MissingTool[]> => {
      if (group === undefined) return [];
      const answer = await client.raw(`/apis/${group}`, { abort }).catch(() => undefined);
      if (answer?.status !== 404) return [];
      const notFound = `${name} is in \`coordinate\` of the policy, but the cluster has no kind of the API group ${group}, which ${title} installs; if it is not installed, nothing waits for it`;
      return [{ tool: name, notFound }];
    },
  );
  return (await Promise.all(asked)).flat();
}

/** Resolves with a sentence for each tool of the policy that was not found, or for which Refit may not look. */
export async function presenceProblems(
  client: LockClient & Pick<KubeClient, 'raw'>,
  coordinate: readonly ToolName[],
  abort: AbortSignal,
): Promise<string[]> {
  const missing = await unservedTools(client, coordinate, abort);
  const look = { holder: '', isOwn: () => false, now: 0, ageOf: () => 0, abort };
  const locks = locksOf(coordinate).map(async (kind): Promise<string[]> => {
    try {
      return [(await kind.look(client, look)).notFound ?? []].flat();
    } catch (error) {
      if (!isForbidden(error)) throw error;
      return [
        `${kind.tool} is in \`coordinate\` of the policy, but the leader has no right to read ${kind.place}, so no node starts: ${kind.taking.rights} prints the rights`,
      ];
    }
  });
  return [...missing.map(({ notFound }) => notFound), ...(await Promise.all(locks)).flat()];
}
