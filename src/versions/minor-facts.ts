/**
 * Defines the facts of a minor version of Kubernetes 1 that its sources state: which feature gates, flags and APIs its
 * components have, and what its kubeadm requires. The files in `data/` have the facts in a short form that people can
 * compare.
 */

/** The components whose flags and feature gates are known. */
export const COMPONENTS = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kube-proxy',
  'kubelet',
] as const;

export type Component = (typeof COMPONENTS)[number];

/** `DEPRECATED` gates will be removed, whatever their value is. */
export type GateStage = 'ALPHA' | 'BETA' | 'GA' | 'DEPRECATED';

export interface FeatureGate {
  readonly stage: GateStage;
  /** The value of the gate if nobody sets it. Some components have another default, unless the gate is locked. */
  readonly default: boolean;
  /** True if a component refuses every value but the default. */
  readonly locked: boolean;
}

/** The state of several gates, such as `GA on locked` or `ALPHA off`. */
export type GateState = `${GateStage} ${'on' | 'off'}${'' | ' locked'}`;

/** What the sources say about the future of an API. Each number is a minor version of Kubernetes 1. */
export interface Lifecycle {
  readonly deprecated?: number;
  /** The first minor version that no longer serves the API. */
  readonly removed?: number;
  /** The API that replaces it, such as `certificates.k8s.io/v1`. */
  readonly replacement?: string;
}

/** The short form of the facts. Each text has names between spaces and line ends. */
export interface WrittenFacts {
  readonly minor: number;
  /** The release from whose sources the facts were read. */
  readonly release: string;
  /** Changes if the generator, its source or this file changes. */
  readonly digest: string;
  /** The version of etcd that kubeadm installs. */
  readonly etcd: string;
  /** The oldest version of an etcd that kubeadm does not install, but uses. */
  readonly externalEtcd: string;
  /** The versions of the configuration that kubeadm reads. */
  readonly kubeadmFormats: readonly string[];
  /** The feature gates of kubeadm itself. */
  readonly kubeadmGates: Readonly<Partial<Record<GateState, string>>>;
  /** Regular expressions. The kernel check of kubeadm accepts a kernel release that matches one of them. */
  readonly kernels: readonly string[];
  readonly gates: Readonly<Partial<Record<GateState, string>>>;
  /** The gates that some components do not know. The default is none. */
  readonly gatesUnknownTo: Readonly<Partial<Record<Component, string>>>;
  readonly flags: Readonly<Record<Component, string>>;
  /** The kinds that the API server can serve, by group and version. The core group is left out, because it loses no kind. */
  readonly apis: Readonly<Record<string, string>>;
  /** The lifecycles of served APIs, by group, version and kind, such as `resource.k8s.io/v1beta1 DeviceClass`. */
  readonly lifecycles: Readonly<Record<string, Lifecycle>>;
}

export interface MinorFacts
  extends Pick<WrittenFacts, 'minor' | 'release' | 'etcd' | 'externalEtcd' | 'kubeadmFormats'> {
  /** Returns true if the kernel check of kubeadm accepts this release of Linux, such as `6.1.0`. */
  supportsKernel(release: string): boolean;
  readonly kubeadmGates: ReadonlyMap<string, FeatureGate>;
  /** Returns the gate; undefined if the component does not know it, and so refuses to start with it. */
  gateOf(component: Component, name: string): FeatureGate | undefined;
  hasFlag(component: Component, name: string): boolean;
  /** Returns true if the API server can serve this kind. `apiVersion` has a group, such as `apps/v1`. */
  serves(apiVersion: string, kind: string): boolean;
  /** The served APIs with a group, such as `['apps/v1', 'Deployment']`. */
  readonly apis: readonly (readonly [apiVersion: string, kind: string])[];
}

/** Returns the facts in the form in which they are asked. */
export function readFacts(written: WrittenFacts): MinorFacts {
  const { minor, release, etcd, externalEtcd, kubeadmFormats } = written;
  const kernels = written.kernels.map((each) => new RegExp(each));
  const gates = gatesIn(written.gates);
  const unknown = new Map(
    COMPONENTS.map((name) => [name, new Set(wordsOf(written.gatesUnknownTo[name] ?? ''))]),
  );
  const flags = new Map(
    COMPONENTS.map((name) => [name, new Set(wordsOf(written.flags[name]).map(withDashes))]),
  );
  const apis = Object.entries(written.apis).flatMap(([apiVersion, kinds]) =>
    wordsOf(kinds).map((kind) => [apiVersion, kind] as const),
  );
  const served = new Set(apis.map((each) => each.join(' ')));
  return {
    minor,
    release,
    etcd,
    externalEtcd,
    kubeadmFormats,
    apis,
    kubeadmGates: gatesIn(written.kubeadmGates),
    supportsKernel: (release) => kernels.some((each) => each.test(release)),
    gateOf: (component, name) =>
      unknown.get(component)?.has(name) === true ? undefined : gates.get(name),
    hasFlag: (component, name) => flags.get(component)?.has(withDashes(name)) === true,
    serves: (apiVersion, kind) => served.has(`${apiVersion} ${kind}`),
  };
}

/** Returns the name of a flag with dashes. Users and some libraries write underscores, and the components take both. */
function withDashes(name: string): string {
  return name.replaceAll('_', '-');
}

/** Returns the names in a text of a data file. */
export function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

function gatesIn(states: WrittenFacts['gates']): Map<string, FeatureGate> {
  return new Map(
    Object.entries(states).flatMap(([state, names]) => {
      const [stage, value, locked] = state.split(' ');
      const gate: FeatureGate = {
        stage: stage as GateStage,
        default: value === 'on',
        locked: locked === 'locked',
      };
      return wordsOf(names).map((name) => [name, gate] as const);
    }),
  );
}
