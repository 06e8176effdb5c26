/**
 * A manager like those of controller-runtime: an unfiltered cache, and controllers that the events of the cache
 * trigger.
 */
import type { KubeClient } from '../../../../src/kube/client.ts';
import type { KubeObject, Resource } from '../../../../src/kube/resources.ts';
import { createInformer, type Informer } from '../../../../src/kube/watch/informer.ts';
import { stableStringify } from '../../../../src/util/json.ts';
import type { Logger } from '../../../../src/util/log.ts';
import { type Reconcile, WorkLoop } from './work-loop.ts';

export interface Controller {
  readonly name: string;
  readonly resource: Resource;
  /** Deletions trigger nothing in the original. */
  readonly triggers: {
    readonly create: boolean;
    /** `any` for every update, `annotations` for an update that changes an annotation. */
    readonly update?: 'any' | 'annotations';
  };
  /** Reports whether the event triggers the controller. It gets the object as it is after the event. */
  readonly admits: (object: KubeObject) => boolean;
  readonly reconcile: Reconcile;
}

/** The cache from which a reconciler reads. Its objects may be older than those of the API server. */
export interface Cache {
  get<T extends KubeObject>(resource: Resource<T>, name: string): T | undefined;
  list<T extends KubeObject>(resource: Resource<T>): T[];
}

export interface ManagerParts {
  readonly client: KubeClient;
  readonly log: Logger;
  /** Everything ends when this signal aborts. */
  readonly abort: AbortSignal;
  /** All cached resources. Their objects are cached without a filter: the original watches more than it needs. */
  readonly resources: readonly Resource[];
  readonly controllers: (cache: Cache) => readonly Controller[];
}

/** Runs until its signal aborts. The controllers receive the objects of the first list as creation events. */
export class Manager implements Cache {
  readonly #informers = new Map<string, Informer>();
  readonly #loops: WorkLoop[] = [];
  readonly #runs: Promise<void>[] = [];
  #begun = false;

  constructor({ client, log, abort, resources, controllers }: ManagerParts) {
    for (const resource of resources) {
      const informer = createInformer(client, resource);
      this.#informers.set(resource.plural, informer);
      this.#runs.push(informer.run(abort));
    }
    const loops = controllers(this).map((controller) => {
      const loop = new WorkLoop(
        controller.reconcile,
        abort,
        log.child({ controller: controller.name }),
      );
      return { controller, loop };
    });
    this.#loops.push(...loops.map(({ loop }) => loop));
    const begun = this.#whenSynced(abort).then(() => {
      for (const { controller, loop } of loops) this.#connect(controller, loop);
      this.#begun = true;
    });
    // The promise rejects only if the signal aborts, because otherwise every cache becomes complete at some time.
    this.#runs.push(begun.catch(() => undefined));
  }

  get<T extends KubeObject>(resource: Resource<T>, name: string): T | undefined {
    return this.#informer(resource).get(name) as T | undefined;
  }

  list<T extends KubeObject>(resource: Resource<T>): T[] {
    return this.#informer(resource).list() as T[];
  }

  /** True when its controllers have started. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Waits until all caches are complete. No controller starts before that. */
  async #whenSynced(abort: AbortSignal): Promise<void> {
    await Promise.all(
      [...this.#informers.values()].map(async (informer) => await informer.whenSynced(abort)),
    );
  }

  /** Resolves when all work of the manager has ended. Call it only after the signal has aborted. */
  async ended(): Promise<void> {
    await Promise.all([...this.#runs, ...this.#loops.map(async (loop) => await loop.settled())]);
  }

  #informer(resource: Resource): Informer {
    const informer = this.#informers.get(resource.plural);
    if (informer === undefined) throw new Error(`${resource.plural} are not in the cache`);
    return informer;
  }

  #connect({ resource, triggers, admits }: Controller, loop: WorkLoop): void {
    this.#informer(resource).addHandler({
      added: (object) => {
        if (triggers.create && admits(object)) loop.add(object.metadata.name);
      },
      updated: (object, previous) => {
        if (triggers.update === undefined || !admits(object)) return;
        if (triggers.update === 'annotations' && sameAnnotations(object, previous)) return;
        loop.add(object.metadata.name);
      },
    });
  }
}

function sameAnnotations(a: KubeObject, b: KubeObject): boolean {
  return stableStringify(a.metadata.annotations) === stableStringify(b.metadata.annotations);
}
