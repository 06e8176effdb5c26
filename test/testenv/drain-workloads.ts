/** Builds manifests for tests of drains: pods that run only on the nodes of one stage. */

export interface PodTraits {
  readonly finalizers?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly object[];
  readonly spec?: object;
}

/** Builds workloads for one stage. `stage` is the label of its nodes. Pods have the label `app: <name>` by default. */
export class Workloads {
  readonly #namespace: string;
  readonly #stage: string;

  constructor(namespace: string, stage: string) {
    this.#namespace = namespace;
    this.#stage = stage;
  }

  /** `spec` has the fields that the kind needs in addition to selector and template. */
  of(
    kind: 'Deployment' | 'StatefulSet' | 'DaemonSet',
    name: string,
    spec: object = {},
    traits: PodTraits = {},
  ): object {
    const labels = { app: name, ...traits.labels };
    const selector = { matchLabels: { app: name } };
    const template = this.#template({ ...traits, labels });
    return {
      apiVersion: 'apps/v1',
      kind,
      metadata: this.#metadata(name),
      spec: { selector, template, ...spec },
    };
  }

  /** Returns a Job whose pod succeeds as soon as it runs. */
  job(name: string): object {
    const template = this.#template({ spec: { restartPolicy: 'Never' } });
    return {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: this.#metadata(name),
      spec: { template },
    };
  }

  pod(name: string, traits: PodTraits = {}): object {
    const { metadata, spec } = this.#template({ labels: { app: name }, ...traits });
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, ...this.#metadata(name) },
      spec,
    };
  }

  /** Returns a budget for the pods with the label `app: <app>`. */
  budget(name: string, app: string, spec: object): object {
    const selector = { matchLabels: { app } };
    return {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: this.#metadata(name),
      spec: { selector, ...spec },
    };
  }

  #metadata(name: string): { name: string; namespace: string } {
    return { name, namespace: this.#namespace };
  }

  #template({ spec, ...metadata }: PodTraits): { metadata: object; spec: object } {
    const containers = [{ name: 'c', image: 'example.com/none' }];
    return { metadata, spec: { nodeSelector: { stage: this.#stage }, containers, ...spec } };
  }
}
