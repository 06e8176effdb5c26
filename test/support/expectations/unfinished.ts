/** Counts the Jobs or pods that have not finished, as a watch shows them. */
import type { KubeClient } from '../../../src/kube/client.ts';
import type { Job, KubeObject, Pod, Resource } from '../../../src/kube/resources.ts';
import { createInformer } from '../../../src/kube/watch/informer.ts';

export interface Unfinished {
  /** Returns the greatest number that were unfinished at the same time. */
  most(): number;
  /** Returns the number of all objects that were created. */
  created(): number;
}

/** Resolves when the watch has delivered the existing objects. The watch runs until the signal aborts. */
export async function followUnfinished(
  client: KubeClient,
  resource: Resource,
  namespace: string,
  abort: AbortSignal,
): Promise<Unfinished> {
  const informer = createInformer(client, resource, { namespace });
  const all = new Set<string>();
  const open = new Set<string>();
  let most = 0;
  const note = (object: KubeObject): void => {
    const { uid = '' } = object.metadata;
    all.add(uid);
    if (isFinished(object)) open.delete(uid);
    else open.add(uid);
    most = Math.max(most, open.size);
  };
  void informer.run(abort);
  await informer.whenSynced(abort);
  informer.addHandler({
    added: note,
    updated: note,
    deleted: ({ metadata }) => open.delete(metadata.uid ?? ''),
  });
  return { most: () => most, created: () => all.size };
}

function isFinished({ status }: Job & Pod): boolean {
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return true;
  return (status?.conditions ?? []).some(
    ({ type, status: is }) => is === 'True' && (type === 'Complete' || type === 'Failed'),
  );
}
