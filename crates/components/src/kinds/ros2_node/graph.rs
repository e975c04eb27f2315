//! The topic `ros_discovery_info`, which shows the node to the tools of ROS.

use std::sync::Arc;

use viaduct_bus::Qos;
use viaduct_ros::dds::{
    GidForm, Guid, NodeEntities, PARTICIPANT_ENTITIES_TOPIC, PARTICIPANT_ENTITIES_TYPE, ParticipantEntities,
};

use super::settings::{Distribution, Ros2NodeSettings};
use super::sys::{DdsError, Participant, Reader, Waitset, WriteError, Writer};

const NAMES: (&str, &str) = (PARTICIPANT_ENTITIES_TOPIC, PARTICIPANT_ENTITIES_TYPE);

/// Publishes the node with its readers and writers.
pub(super) struct Graph {
    writer: Writer,
    reader: Reader,
    participant: Guid,
    namespace: String,
    name: String,
    /// The length of identifiers that peers use; `None` until it is known.
    form: Option<GidForm>,
    /// Readers and writers as last published.
    published: Option<(Vec<Guid>, Vec<Guid>)>,
}

impl Graph {
    pub(super) fn create(
        participant: &Arc<Participant>,
        settings: &Ros2NodeSettings,
        name: String,
        (waitset, token): (&Waitset, usize),
    ) -> Result<Self, DdsError> {
        let offered = Qos::system_default().transient_local();
        // Each participant publishes one message, and the reader of its topic gets those of all of them.
        let requested = Qos::parameters().transient_local();
        Ok(Self {
            writer: Writer::create(participant, NAMES, (&offered, ""), (waitset, token))?,
            reader: Reader::create(participant, NAMES, (&requested, ""), (waitset, token))?,
            participant: participant.guid(),
            namespace: settings.namespace.clone(),
            name,
            form: match settings.distribution {
                Distribution::Auto => None,
                Distribution::Humble => Some(GidForm::Humble),
                Distribution::Iron => Some(GidForm::Iron),
            },
            published: None,
        })
    }

    /// Reads the messages of other participants, to find out the length of their identifiers.
    pub(super) fn receive(&mut self) -> Result<(), DdsError> {
        let mut samples = Vec::new();
        while self.reader.take(&mut samples)? {}
        let forms = samples.iter().filter_map(|sample| ParticipantEntities::parse(&sample.payload));
        let found = forms.map(|(_, form)| form).next();
        if self.form.is_none() && found.is_some() {
            self.form = found;
            if found == Some(GidForm::Humble) {
                self.published = None;
            }
        }
        Ok(())
    }

    /// Publishes the readers and writers of the node if they have changed.
    pub(super) fn publish(&mut self, readers: Vec<Guid>, writers: Vec<Guid>) -> Result<(), WriteError> {
        let endpoints = Some((readers, writers));
        if self.published == endpoints {
            return Ok(());
        }
        let (readers, writers) = endpoints.clone().unwrap_or_default();
        let node = NodeEntities { namespace: self.namespace.clone(), name: self.name.clone(), readers, writers };
        let message = ParticipantEntities { participant: self.participant, nodes: vec![node] };
        self.writer.write(&[message.write(self.form.unwrap_or(GidForm::Iron))])?;
        self.published = endpoints;
        Ok(())
    }
}
