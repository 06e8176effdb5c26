/** Owns freshness: what this process wrote last, so that no decision is taken on a view older than that. */
import type { Informer } from '../kube/informer.ts';
import { compareResourceVersions } from '../kube/resource-version.ts';
import { pathOf, type Resource } from '../kube/resources.ts';
import type { KubeObject } from '../kube/types.ts';

/** What an informer shows of one kind of object: it lags behind the server. */
export type View<T extends KubeObject> = Pick<Informer<T>, 'get' | 'list' | 'resourceVersion'>;

export class OwnWrites {
  readonly #written = new Map<string, KubeObject>();

  /** Call with the server's answer to every write. */
  remember(resource: Resource, answer: KubeObject): void {
    this.#written.set(pathOf(resource, { name: answer.metadata.name }), answer);
  }

  /** The newest that is known: the view's object, or our own last write where the view has not caught up with it. */
  latest<T extends KubeObject>(resource: Resource<T>, view: View<T>, name: string): T | undefined {
    const path = pathOf(resource, { name });
    const seen = view.get(name);
    const written = this.#written.get(path) as T | undefined;
    if (!written) return seen;
    if (hasReached(seen?.metadata.resourceVersion ?? view.resourceVersion(), written.metadata.resourceVersion)) {
      this.#written.delete(path);
      return seen;
    }
    return written;
  }
}

function hasReached(seen: string | undefined, wanted: string | undefined): boolean {
  return wanted === undefined || (seen !== undefined && compareResourceVersions(seen, wanted) >= 0);
}
