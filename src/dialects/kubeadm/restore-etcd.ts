/** The scripts that restore a snapshot of etcd: on all members, as a new cluster. */
import { IS_WHOLE } from '../../kubeadm/etcd.ts';
import { scriptFile } from '../../kubeadm/script-file.ts';
import { detached, LISTENS, PRELUDE, quoted } from '../../kubeadm/scripts.ts';

export interface RestoreOptions {
  readonly snapshot: string;
  /** Names the cluster, and what the members had before. */
  readonly stamp: string;
}

function member({ snapshot, stamp }: RestoreOptions): string {
  const names = `SNAPSHOT=${quoted(snapshot)}\nSTAMP=${quoted(stamp)}\n`;
  return `${names}${PRELUDE}${IS_WHOLE}${LISTENS}${scriptFile('restore-etcd.sh')}`;
}

/** Prints `SHA256 NAME=URL` of the snapshot and the member, or what prevents a restore. Changes nothing. */
export function restoreFactsScript(options: RestoreOptions): string {
  return `${member(options)}facts\n`;
}

/** In this order, each on all hosts before the next. `members`: as of etcd's flag `--initial-cluster`. */
export function restoreScripts(options: RestoreOptions, members: string): Readonly<Record<string, string>> {
  const script = (step: string): string => detached(`MEMBERS=${quoted(members)}\n${member(options)}${step}\n`, 5);
  return {
    'Restoring it beside the data in use': script('restore_beside'),
    'Stopping the API server and etcd': script('stop'),
    'Starting etcd with the restored data': script('start_etcd'),
    'Starting the API server': script('start_api_server'),
  };
}
