/** Borrows a real control plane for the test file that runs next: no other file uses it meanwhile. */
import { borrowControlPlane } from './control-plane.ts';

await borrowControlPlane();
