/** The contract of the component of a dialect that `refit install` puts into the cluster. */
export interface InstallComponent {
  /** The word for the component in a command line, such as `refit install controller`. */
  readonly name: string;
  /** Names the component in a sentence. */
  readonly title: string;
  /** The folders of deploy/chart/manifests that the component consists of, in the order of installation. */
  readonly folders: readonly string[];
  /** True if the component downloads what it installs on nodes, so that `refit install` needs to know from where. */
  readonly hasPayload: boolean;
}
