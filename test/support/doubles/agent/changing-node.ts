/** A Node that changes when the test says so. */
import type { KubeObject } from '../../../../src/kube/resources.ts';

export class ChangingNode {
  newest: KubeObject | undefined;
  version = 0;
  readonly #listeners = new Set<() => void>();

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  show(node: KubeObject | undefined): void {
    this.newest = node;
    this.version++;
    for (const listener of this.#listeners) listener();
  }
}
