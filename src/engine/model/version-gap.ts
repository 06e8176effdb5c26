/** What a node lacks although the work on it has succeeded. */

/** The difference between the version that the work on a node installed and the version of its kubelet. */
export interface VersionGap {
  /** The version that the kubelet must report. */
  readonly wanted: string;
  /** The version that the kubelet reports; undefined if it reports none. */
  readonly reported: string | undefined;
  /** A clause that names the work, such as `Job a/b succeeded on Node c`. */
  readonly work: string;
}
