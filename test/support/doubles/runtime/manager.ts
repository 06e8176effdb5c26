/** A manager as controller-runtime builds one: an unfiltered cache, and controllers that its events trigger. */
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
    /** Every update, or only one that changes an annotation. */
    readonly update?: 'any' | 'annotations';
  };
  /** Looks at the object as it is after the event. */
  readonly admits: (object: KubeObject) => boolean;
  readonly reconcile: Reconcile;
}

/** What a reconciler reads from: perhaps older than what the API server has. */
export interface Cache {
  get<T extends KubeObject>(resource: Resource<T>, name: string): T | undefined;
  list<T extends KubeObject>(resource: Resource<T>): T[];
}

export interface ManagerParts {
  readonly client: KubeClient;
  readonly log: Logger;
  /** Everything ends when it aborts. */
  readonly abort: AbortSignal;
  /** All that is cached, in whole: the original watches more than it needs. */
  readonly resources: readonly Resource[];
  readonly controllers: (cache: Cache) => readonly Controller[];
}

/** Runs until its signal aborts; what the cache finds at first comes to the controllers as if it had just been created. */
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
    // Only the signal's abort keeps a cache from being complete at last.
    this.#runs.push(begun.catch(() => undefined));
  }

  get<T extends KubeObject>(resource: Resource<T>, name: string): T | undefined {
    return this.#informer(resource).get(name) as T | undefined;
  }

  list<T extends KubeObject>(resource: Resource<T>): T[] {
    return this.#informer(resource).list() as T[];
  }

  /** True once its controllers are at work. */
  get begun(): boolean {
    return this.#begun;
  }

  /** No controller begins before everything is there. */
  async #whenSynced(abort: AbortSignal): Promise<void> {
    await Promise.all(
      [...this.#informers.values()].map(async (informer) => await informer.whenSynced(abort)),
    );
  }

  /** Resolves, after its signal has aborted, once nothing of it is under way. */
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
