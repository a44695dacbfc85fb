//! The whole suite, on a real server of each kind: every case has a prefix of
//! its own, and every handle its own connections and its own probe, as one more
//! process would.

mod common;

use common::{Place, Server};

mod moto {
    use super::*;
    tenure_conformance::suite!(Place::on(Server::Moto));
}

mod seaweedfs {
    use super::*;
    tenure_conformance::suite!(Place::on(Server::SeaweedFs));
}

mod azurite {
    use super::*;
    tenure_conformance::suite!(Place::on(Server::Azurite));
}

mod fake_gcs {
    use super::*;
    tenure_conformance::suite!(Place::on(Server::FakeGcs));
}
