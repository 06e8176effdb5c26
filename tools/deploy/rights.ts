/** Makes the roles of pods from the documented roles in deploy/, whose subjects are users. */
import { readFileSync } from 'node:fs';
import { type Document, isMap, parseAllDocuments, type YAMLMap } from 'yaml';
import { fileOf, REFIT_NAMESPACE } from './objects.ts';

/** The service accounts that replace a user of the role files. */
const ACCOUNTS: Readonly<Record<string, string>> = {
  'refit-controller': 'refit-controller',
  'refit-capi': 'refit-capi',
};
/** Users for whom a service account is in the file already. */
const BESIDE_ACCOUNT = new Set(['refit-cattle']);
/** People and kubelets keep their names as subjects. */
const PEOPLE = new Set(['refit-viewer']);

/**
 * Returns the documents of a role file: the documents of the viewer, or all other documents. The namespace of Refit has
 * its own file, so it is left out.
 */
export function rightsOf(file: string, whose: 'viewer' | 'others'): string {
  const text = readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8');
  const documents = parseAllDocuments(text).filter((document) => {
    const name = String(document.getIn(['metadata', 'name']));
    // The account is made with its Deployment.
    const isElsewhere = name === REFIT_NAMESPACE || document.get('kind') === 'ServiceAccount';
    return !isElsewhere && PEOPLE.has(name) === (whose === 'viewer');
  });
  return fileOf(`deploy/${file}`, documents.map(withAccounts));
}

/** A manifest of deploy/ as it is. */
export function copyOf(file: string): string {
  const text = readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8');
  return fileOf(`deploy/${file}`, [text]);
}

function withAccounts(document: Document): string {
  const subjects = document.get('subjects');
  if (subjects && typeof subjects === 'object' && 'items' in subjects) {
    const list = subjects as { items: YAMLMap[] };
    list.items = list.items
      .filter((subject) => isMap(subject) && !BESIDE_ACCOUNT.has(String(subject.get('name'))))
      .map((subject) => accountFor(document, subject));
  }
  document.commentBefore = null;
  return document
    .toString({ directives: false, lineWidth: 120, flowCollectionPadding: false })
    .replace(/^---\n/, '');
}

function accountFor(document: Document, subject: YAMLMap): YAMLMap {
  const name = ACCOUNTS[String(subject.get('name'))];
  if (name === undefined) return subject;
  return document.createNode({ kind: 'ServiceAccount', name, namespace: REFIT_NAMESPACE });
}
